"""Answers to calls of tools that are no result yet, in each protocol of MCP: a question to the client (2026-07-28), a
task that was accepted (2025-11-25), and several messages in one (2025-03-26)."""

import json
from typing import Any

import httpx
import pytest

import chaoslab as lab

REFUND = [{"effect": "refund", "order": 17}]


def shop() -> Any:
    """A server of the SDK's that asks its user before it refunds."""
    from mcp.server.mcpserver import MCPServer
    from mcp.server.mcpserver.resolve import Elicit, Resolve
    from pydantic import BaseModel

    class Yes(BaseModel):
        yes: bool

    async def confirm(order: int) -> Any:
        return Elicit(f"Refund order {order}?", Yes)

    async def refund(order: int, ok: Any) -> str:
        return f"refunded {order}" if ok.yes else "not refunded"

    from typing import Annotated

    refund.__annotations__["ok"] = Annotated[Yes, Resolve(confirm)]
    confirm.__annotations__["return"] = Elicit[Yes]
    made = MCPServer("shop", log_level="ERROR")
    made.tool()(refund)
    return made


async def asks(to: Any, mode: str) -> str:
    from mcp import Client
    from mcp.types import ElicitResult

    async def elicit(context: Any, params: Any) -> ElicitResult:  # noqa: ARG001
        return ElicitResult(action="accept", content={"yes": True})

    async with Client(to, mode=mode, elicitation_callback=elicit) as client:
        result: Any = await client.call_tool("refund", {"order": 17})
    return str(result.content[0].text)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
@pytest.mark.parametrize("of", ["tool", "events", "json"])
def test_a_call_whose_user_is_asked_first_has_one_effect(mode: str, of: str) -> None:
    if (mode, of) == ("legacy", "json"):
        return  # a server that answers in JSON cannot ask before 2026-07-28
    served: dict[str, Any] = {"tools": [lab.mcp_tool("refund")]}
    to: Any = shop()
    if of != "tool":

        def app() -> Any:
            return shop().streamable_http_app(host="shop", json_response=of == "json")

        to, served = "http://shop/mcp", {"services": {"shop": lab.fresh(app)}}
    trial = lab.run(lambda _: asks(to, mode), "Refund 17", effects=REFUND, **served)
    assert (str(trial.outcome), trial.answer, trial.effects) == ("correct", "refunded 17", REFUND)


TASK = {"taskId": "t1", "status": "working", "createdAt": "2026-11-28T15:00:00Z", "ttl": None}
CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "refund", "arguments": {"order": 17}}}
ASKS = {"jsonrpc": "2.0", "id": 2, "method": "tasks/result", "params": {"taskId": "t1"}}
LOOKS = {**ASKS, "method": "tasks/get"}


def of_tasks(result: Any, state: str, *, streamed: bool) -> Any:
    """A server that accepts each call as a task; `result` is the task's, `state` the one that it tells."""

    def answered(environ: Any, start_response: Any) -> Any:
        asked = json.loads(environ["wsgi.input"].read())
        said: Any = {"tools/call": {"task": TASK}, "tasks/get": {**TASK, "status": state}}.get(asked["method"], result)
        body = json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": said}).encode()
        start_response("200 OK", [("Content-Type", "text/event-stream" if streamed else "application/json")])
        return [b"id: 1\ndata:\n\n", b"data: " + body + b"\n\n"] if streamed else [body]

    return answered


PAID = {"content": [{"type": "text", "text": "30"}]}


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("faults", [[], [lab.inject("latency", "shop")]])
@pytest.mark.parametrize(
    ("asked", "result", "state", "effects"),
    [
        ([CALL, ASKS], PAID, "completed", REFUND),
        ([CALL, ASKS, ASKS], PAID, "completed", REFUND),
        ([CALL, ASKS], {**PAID, "isError": True}, "failed", []),
        ([CALL, LOOKS], PAID, "failed", []),
        ([CALL, LOOKS], PAID, "working", REFUND),  # nobody has heard of its end
        ([CALL], PAID, "working", REFUND),
        ([CALL, CALL, ASKS], PAID, "completed", REFUND),  # the same id is the same task
        ([ASKS], PAID, "completed", []),  # of a task that nobody has begun
    ],
)
def test_a_task_has_the_effect_of_its_result(
    asked: list[Any], result: Any, state: str, effects: list[Any], faults: list[Any], *, streamed: bool
) -> None:
    def agent(_: str) -> str:
        with httpx.Client(base_url="http://shop") as client:
            for message in asked:
                client.post("/mcp", json=message).read()
        return "done"

    services = {"shop": of_tasks(result, state, streamed=streamed)}
    trial = lab.run(agent, "go", services=services, effects=[], faults=faults)
    assert trial.effects == effects


def test_a_wrong_value_reaches_the_result_of_a_task() -> None:
    def agent(_: str) -> Any:
        with httpx.Client(base_url="http://shop") as client:
            return [client.post("/mcp", json=message).json()["result"] for message in (CALL, ASKS)]

    wrong = lab.inject("wrong_value", "shop", tool="refund", factor=2, calls=[1], attempts=[2])
    services = {"shop": of_tasks(PAID, "completed", streamed=False)}
    trial = lab.run(agent, "go", services=services, faults=[wrong])
    assert trial.answer == [{"task": TASK}, {"content": [{"type": "text", "text": "60"}]}]


def answers(environ: Any, start_response: Any) -> Any:
    """A server that answers a batch; the call of an odd order fails."""
    asked = json.loads(environ["wsgi.input"].read())
    said = [
        {"jsonrpc": "2.0", "id": each["id"], "result": {**PAID, "isError": each["params"]["arguments"]["order"] % 2}}
        for each in reversed(asked)
    ]
    for each in said:
        each["result"]["isError"] = bool(each["result"]["isError"])
    start_response("200 OK", [("Content-Type", "application/json")])
    return [json.dumps(said).encode()]


def call(number: int, order: int) -> dict[str, Any]:
    return {**CALL, "id": number, "params": {"name": "refund", "arguments": {"order": order}}}


@pytest.mark.parametrize(
    ("faults", "texts"),
    [([], ["30", "30"]), ([lab.inject("wrong_value", "shop", factor=2, point=0)], ["30", "60"])],
)
def test_each_call_of_a_batch_has_its_own_end(faults: list[Any], texts: list[str]) -> None:
    def agent(_: str) -> Any:
        said = httpx.post("http://shop/mcp", json=[call(1, 16), call(2, 17), call(3, 18)]).json()
        return [each["result"]["content"][0]["text"] for each in said]

    trial = lab.run(agent, "go", services={"shop": answers}, effects=[], faults=faults)
    assert sorted(set(trial.answer)) == sorted(set(texts))
    assert [effect["order"] for effect in trial.effects] == [16, 18]


def test_the_answers_to_a_batch_may_come_one_by_one() -> None:
    def agent(_: str) -> str:
        return httpx.post("http://shop/mcp", json=[call(1, 16), call(2, 17)]).text

    def streams(environ: Any, start_response: Any) -> Any:
        said = json.loads(answers(environ, lambda *_: None)[0])
        start_response("200 OK", [("Content-Type", "text/event-stream")])
        return [f"data: {json.dumps(each)}\n\n".encode() for each in said]

    trial = lab.run(agent, "go", services={"shop": streams}, effects=[])
    assert [effect["order"] for effect in trial.effects] == [16]


def test_a_fault_of_arguments_and_one_without_an_answer_meet_a_batch() -> None:
    asked: list[Any] = []

    def takes(request: Any) -> Any:
        asked.append([each["params"]["arguments"] for each in request.json])
        return {}

    def agent(_: str) -> str:
        return httpx.post("http://shop/mcp", json=[call(1, 16), call(2, 18)]).text

    trial = lab.run(agent, "go", services={"shop": takes}, faults=[lab.inject("lost_field", "shop", field="order")])
    assert (trial.met, asked[-1]) == (("lost_field on shop",), [{"order": 16}, {}]), trial.story()
    trial = lab.run(agent, "go", services={"shop": takes}, faults=[lab.inject("silent_no_op", "shop")], twin=False)
    assert [each["id"] for each in json.loads(trial.answer)] == [1, 2]
    trial = lab.run(lambda _: httpx.post("http://shop/mcp", json=[call(1, 16)]).text, "go", services={"shop": takes})
    assert trial.answer == "{}"


def test_a_batch_of_one_call_is_that_call() -> None:
    def agent(_: str) -> Any:
        return httpx.post("http://shop/mcp", json=[call(1, 16), {"jsonrpc": "2.0", "method": "notifications/x"}]).text

    def one(request: Any) -> Any:
        return [{"jsonrpc": "2.0", "id": 1, "result": PAID}] if isinstance(request.json, list) else {}

    failing = lab.inject("tool_error", "shop", tool="refund", calls=[1])
    trial = lab.run(agent, "go", services={"shop": one}, effects=[], faults=[failing])
    assert "30" not in trial.answer
    assert trial.effects == []
