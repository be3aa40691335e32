"""The refusals of a Groq-compatible endpoint; the fault injectors use the same texts."""

from chaoslab.core.service_spec import CONTEXT_LENGTH, ErrorReply


def make_error_reply(
    status: int, message: str, kind: str, code: str | None = None, *, param: str | None = None, **headers: str
) -> ErrorReply:
    error = {
        "message": message, "type": kind, **({"param": param} if param else {}), **({"code": code} if code else {})
    }  # fmt: skip
    return ErrorReply(status, {"error": error}, {name.replace("_", "-"): value for name, value in headers.items()})


_INVALID = "invalid_request_error"

ERRORS: dict[int, ErrorReply] = {
    400: make_error_reply(400, "'messages' : property 'messages' is missing", _INVALID),
    401: make_error_reply(401, "Invalid API Key", _INVALID, "invalid_api_key"),
    404: make_error_reply(
        404, "The model does not exist or you do not have access to it.", _INVALID, "model_not_found"
    ),
    413: make_error_reply(413, "Request Entity Too Large", _INVALID, "request_too_large"),
    429: make_error_reply(
        429, "Rate limit reached for model. Please try again in 1s.", "tokens", "rate_limit_exceeded", Retry_After="1"
    ),
    500: make_error_reply(500, "Internal Server Error", "internal_server_error"),
    503: make_error_reply(503, "Service Unavailable", "service_unavailable"),
    CONTEXT_LENGTH: make_error_reply(
        400,
        "Please reduce the length of the messages or completion.",
        _INVALID,
        "context_length_exceeded",
        param="messages",
    ),
}
# Groq's and OpenAI's SDKs obey this header: without it they would wait and ask again, in vain.
INSUFFICIENT_QUOTA = make_error_reply(
    429, "You exceeded your current quota.", "insufficient_quota", "insufficient_quota", x_should_retry="false"
)
