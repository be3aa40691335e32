"""Of the messages of MCP over HTTP, calls of tools are effects; other services' messages are what they were."""

import asyncio
import json
import time
from typing import Any

import httpx
import pytest

import chaoslab as lab
from chaoslab.core.stream import BodyParts
from chaoslab.seams.protocols import parse_message
from chaoslab.seams.protocols.mcp import is_read_only_tool, iterate_listed_tools
from chaoslab.seams.services import seam

CALL = {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "refund", "arguments": {"order": 17}}}


@pytest.mark.parametrize(
    ("message", "part", "effects"),
    [
        (CALL, "work", [("refund", {"order": 17})]),
        ({**CALL, "params": {"name": "refund"}}, "work", [("refund", {})]),
        ({**CALL, "params": {"name": "refund", "arguments": [17]}}, "work", [("refund", {})]),
        ({**CALL, "params": {"arguments": {}}}, "session", []),  # the server refuses it
        ({**CALL, "params": None}, "session", []),
        ({**CALL, "method": "tools/list"}, "listing", []),
        ({**CALL, "method": "initialize"}, "session", []),
        ({**CALL, "method": "notifications/initialized"}, "session", []),
        ({**CALL, "method": "resources/read", "params": {"uri": "a"}}, "work", []),
        ({"jsonrpc": "2.0", "id": 3, "result": {}}, "session", []),
        ({**CALL, "method": "pay", "params": {"order": 17}}, "work", [("pay", {"order": 17})]),
        ({**CALL, "method": "pay", "params": [17]}, "work", [("pay", {"params": [17]})]),
        ({"body": [{**CALL, "method": "tools/list"}]}, "listing", []),
        ({"body": [{**CALL, "method": "initialize"}]}, "session", []),
        ({**CALL, "method": ["tools/call"]}, None, []),
        ({**CALL, "jsonrpc": "1.0"}, None, []),
        ({"method": "tools/call", "params": {"name": "refund"}}, None, []),
        ({"order": 17}, None, []),
    ],
)
def test_the_part_and_the_effects_of_a_message(message: dict[str, Any], part: str | None, effects: list[Any]) -> None:
    found = parse_message(message, (), body=True)
    assert (found and found.part) == part
    assert found is None or found.list_effects(found.arguments, None) == effects


READS = b'{"result": {"tools": [{"name": "a"}, {"name": "b", "annotations": {"readOnlyHint": true}}]}}'


@pytest.mark.parametrize(
    ("body", "names"),
    [
        (READS, {"b"}),
        (b"event: message\r\ndata: " + READS + b"\r\n\r\n", {"b"}),
        (READS[:-9], set()),
        (READS.replace(b"true", b"false"), set()),
        (READS.replace(b"true", b'"true"'), set()),
        (b'{"result": {"tools": {"name": "b"}}}', set()),
        (b'{"result": {"tools": ["b", null, {"annotations": {"readOnlyHint": true}}]}}', set()),
        (b'[{"result": 3}]', set()),
        (b"", set()),
    ],
)
def test_the_tools_that_only_read_are_those_of_which_the_list_says_so(body: bytes, names: set[str]) -> None:
    assert {tool["name"] for tool in iterate_listed_tools(body) if is_read_only_tool(tool)} == names


def test_a_services_effects_are_the_calls_of_its_tools() -> None:
    def agent(_: str) -> str:
        with httpx.Client(base_url="http://shop") as client:
            for message in ({**CALL, "method": "initialize"}, CALL, {**CALL, "method": "pay"}):
                client.post("/mcp", json=message)
        return "done"

    trial = lab.run(agent, "go", services={"shop": lambda request: {"asked": request.path}}, effects=[])
    assert [effect["effect"] for effect in trial.effects] == ["refund", "pay"]
    assert trial.effects[0] == {"effect": "refund", "order": 17}


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ({"result": {"content": [], "isError": True}}, True),
        ({"error": {"code": -32602, "message": "no such tool"}}, True),
        ({"result": {"content": [], "isError": False}}, False),
        ({"result": {"content": [], "isError": "true"}}, False),
        ({"result": ["isError"]}, False),
        (["error"], False),
    ],
)
def test_a_failed_call_is_known_by_its_answer(answer: Any, says: bool) -> None:
    found = parse_message(CALL, (), body=True)
    assert found is not None
    assert found.list_effects(found.arguments, answer) == ([] if says else [("refund", {"order": 17})])


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("faults", [[], [lab.inject("latency", "shop")]])
def test_a_call_that_failed_is_no_effect(streamed: bool, faults: list[Any]) -> None:
    def shop(environ: Any, start_response: Any) -> Any:
        asked = json.loads(environ["wsgi.input"].read())
        body = json.dumps({"jsonrpc": "2.0", "result": {"content": [], "isError": asked["id"] == 3}}).encode()
        kind = "text/event-stream" if streamed else "application/json"
        start_response("200 OK", [("Content-Type", kind)])
        return [b"data: " + body + b"\n\n"] if streamed else [body]

    def agent(_: str) -> str:
        with httpx.Client(base_url="http://shop") as client:
            for number in (3, 4):
                client.post("/mcp", json={**CALL, "id": number}).read()
        return "done"

    trial = lab.run(agent, "go", services={"shop": shop}, effects=[], faults=faults)
    assert [effect["effect"] for effect in trial.effects] == ["refund"]


@pytest.mark.parametrize("faults", [[], [lab.inject("latency", "shop")]])
def test_a_tools_answer_is_no_list_of_tools_whatever_it_has(faults: list[Any]) -> None:
    def agent(_: str) -> str:
        for _nth in range(2):
            httpx.post("http://shop/mcp", json=CALL)
        return "done"

    answer = {"result": {"tools": [{"name": "refund", "annotations": {"readOnlyHint": True}}]}}
    trial = lab.run(agent, "go", services={"shop": lambda _: answer}, effects=[], faults=faults)
    assert [effect["effect"] for effect in trial.effects] == ["refund", "refund"]


async def refund(order: int) -> str:
    return f"refunded {order}"


def test_a_function_does_its_own_work_though_a_service_has_a_tool_of_its_name() -> None:
    async def agent(_: str) -> str:
        async with httpx.AsyncClient() as client:
            await client.post("http://shop/mcp", json=CALL)
        return await refund(18)

    trial = lab.run(agent, "go", services={"shop": lambda _: {"result": {}}}, tools=[refund], effects=[])
    assert [(effect["effect"], effect["order"]) for effect in trial.effects] == [("refund", 17), ("refund", 18)]


def test_a_session_that_never_begins_is_a_trial_that_hangs_and_says_why() -> None:
    def agent(_: str) -> str:
        begins = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-03-26"}}
        return httpx.post("http://tools/mcp", json=begins, timeout=None).text

    trial = lab.run(agent, "go", services={"tools": lambda _: time.sleep(1e6)}, anyway=True)
    assert trial.outcome == "hung"
    assert "tools has not answered initialize; the agent waits" in trial.why


def test_a_stream_of_events_is_held_back_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    class Chatty(BodyParts):
        left = 100

        async def read_part(self) -> bytes | None:
            self.left -= 1
            return b'data: {"method": "notifications/progress"}\n\n' if self.left else None

    monkeypatch.setattr(seam, "BODY_MAX", 1000)
    body, whole = asyncio.run(seam._read_until_server_request(Chatty()))
    assert (1000 < len(body) < 1100, whole) == (True, False)
