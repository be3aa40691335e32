"""The calculator, in a plain format of its own. It parses a grammar; it never executes its input."""

from typing import Any

from chaoslab.core.service_spec import ErrorReply, ServiceSpec, ToolSpec
from chaoslab.flask_tools.arithmetic import Wrong, calculate
from chaoslab.flask_tools.service_module import Answer, Refusal, Route, ServiceRequest

KINDS = {400: "bad_request", 404: "not_found", 405: "method_not_allowed", 413: "too_long", 422: "reused_key"}


def make_error_body(status: int, message: str) -> Any:
    return {"error": {"type": KINDS.get(status, "internal"), "message": message}}


def _make_error_reply(status: int, kind: str, message: str, **headers: str) -> ErrorReply:
    return ErrorReply(status, {"error": {"type": kind, "message": message}}, headers)


SERVICE = ServiceSpec(
    name="calculator",
    tools=(
        ToolSpec(
            name="calculate",
            description="Compute the value of an arithmetic expression, e.g. 17 * 24 or sqrt(2) + 3^2.",
            parameters={
                "type": "object",
                "properties": {"expression": {"type": "string", "description": "The arithmetic expression"}},
                "required": ["expression"],
            },
            method="POST",
            path="/calculate",
            body={"expression": "$expression"},
        ),
    ),
    errors={
        401: _make_error_reply(401, "unauthorized", "a valid key is needed"),
        404: _make_error_reply(404, "not_found", "no such path"),
        429: ErrorReply(
            429, {"error": {"type": "rate_limited", "message": "too many requests, slow down"}}, {"Retry-After": "1"}
        ),
        500: _make_error_reply(500, "internal", "the calculator failed"),
        503: _make_error_reply(503, "unavailable", "the calculator is not available"),
    },
)


def routes() -> tuple[Route, ...]:
    return (Route("POST", "/calculate", "calculate", _calculate),)


def _calculate(ask: ServiceRequest) -> Answer:
    expression = ask.body.get("expression")
    if not isinstance(expression, str):
        what = "expression is missing" if expression is None else "expression must be a string"
        raise Refusal(400, make_error_body(400, what))
    try:
        value = calculate(expression)
    except Wrong as wrong:
        error: dict[str, Any] = {"type": wrong.kind, "message": wrong.message}
        if wrong.position is not None:
            error["position"] = wrong.position
        raise Refusal(400, {"error": error}) from None
    text = repr(value).removesuffix(".0") if isinstance(value, float) else str(value)
    return Answer({"expression": expression, "result": value, "text": text})
