"""Faults on tools that are spoken to in MCP over HTTP, JSON-RPC and GraphQL act on the tool's own answer."""

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import BaseModel

import chaoslab as lab
from chaoslab.core.events import CallStarted, Effect, FaultWitnessed
from tests.gateway.parts import history, shop, standing


class Order(BaseModel):
    """An order, as the tool `price` describes its results."""

    order: int
    total: float
    lines: list[str]


TRUE = {"order": 17, "total": 30.0, "lines": ["tea", "cup"]}


def mcp_shop(*, streams: bool = True) -> Any:
    """The SDK is imported with the first test, since each worker collects all tests and few run these."""
    from mcp.server import MCPServer
    from mcp.types import ToolAnnotations

    made = MCPServer("shop", log_level="ERROR")

    @made.tool(annotations=ToolAnnotations(read_only_hint=True))
    def price(order: int) -> Order:
        return Order(order=order, total=30.0, lines=["tea", "cup"])

    @made.tool()
    def refund(order: int) -> str:
        return f"refunded {order}"

    return made.streamable_http_app(host="shop", json_response=not streams)


async def mcp_agent(prompt: str) -> list[Any]:
    """Calls the tools that the prompt names, in one session, and ends it."""
    from mcp import ClientSession, MCPError
    from mcp.client.streamable_http import streamable_http_client

    found: list[Any] = []
    async with streamable_http_client("http://shop/mcp") as (reads, writes), ClientSession(reads, writes) as session:
        await session.initialize()
        await session.list_tools()
        await session.send_ping()
        for nth, tool in enumerate(prompt.split()):
            try:
                result: Any = await session.call_tool(tool, {"order": 17 + nth})
                found.append("refused" if result.is_error else result.structured_content)
            except MCPError as error:
                found.append(error.message)
            except RuntimeError as error:  # the session's own check of the output schema
                found.append(str(error).partition(":")[0])
    return found


def met(trial: Any) -> list[str]:
    return [event.fault for _, event in trial.history.find_events(FaultWitnessed)]


def mcp_trial(prompt: str, *faults: Any, streams: bool = True) -> Any:
    mcp_shop()
    services = {"shop": lab.fresh(lambda: mcp_shop(streams=streams))}
    return lab.run(mcp_agent, prompt, services=services, faults=faults)


def test_the_handshake_and_the_end_of_a_session_are_neither_targets_nor_effects() -> None:
    trial = mcp_trial("price refund", lab.inject("latency", "shop", delay_s=5.0, calls=[2]))
    assert (round(trial.seconds), trial.effects) == (5, [{"effect": "refund", "order": 18}])
    assert [(event.tool, event.arguments) for _, event in trial.history.find_events(CallStarted)] == [
        ("price", {"order": 17}), ("refund", {"order": 18}),
    ]  # fmt: skip
    assert trial.outcome == lab.Outcome.CORRECT


def test_the_tool_is_selected_by_its_name_and_its_arguments() -> None:
    trial = mcp_trial("price refund refund", lab.inject("tool_error", "shop", tool="refund", when="order == 19"))
    assert trial.answer == [TRUE, {"result": "refunded 18"}, "refused"]
    assert [effect["order"] for effect in trial.effects] == [18]


@pytest.mark.parametrize("streams", [True, False])
@pytest.mark.parametrize(
    ("fault", "params", "answer"),
    [
        ("empty", {"how": "whole"}, {"order": 0, "total": 0, "lines": []}),
        ("empty", {"how": "lists"}, {**TRUE, "lines": []}),
        ("page_lost", {}, {**TRUE, "lines": ["tea"]}),
        ("schema_drift", {"kind": "nested", "point": 0.0}, "Invalid structured content returned by tool price"),
        ("tool_error", {"status": 503}, "refused"),
        ("server_error", {"status": 503}, "Server returned an error response"),
        ("not_found", {}, "Session terminated"),
    ],
)
def test_a_fault_acts_on_the_result_within_its_message(
    fault: str, params: dict[str, Any], answer: Any, streams: bool
) -> None:
    trial = mcp_trial("price", lab.inject(fault, "shop", tool="price", **params), streams=streams)
    assert trial.answer == [answer]
    assert met(trial) == [fault]


def test_an_answer_whose_form_leaves_no_room_for_a_fault_is_left_alone() -> None:
    with pytest.warns(UserWarning, match="changed nothing"):
        trial = mcp_trial("price", lab.inject("partial_success", "shop"))
    assert trial.answer == [TRUE]


def test_a_wrong_value_and_an_injected_order_keep_the_schema_and_the_message() -> None:
    for fault in ("wrong_value", "prompt_injection", "oversized", "confident_wrong", "partial_truth", "contradiction"):
        trial = mcp_trial("price", lab.inject(fault, "shop"))
        assert set(trial.answer[0]) >= set(TRUE), (fault, trial.answer)
        assert met(trial)


def test_an_earlier_answer_comes_in_a_message_of_its_own() -> None:
    assert mcp_trial("price price", lab.inject("stale", "shop", calls=[2])).answer == [TRUE, TRUE]
    no_op = mcp_trial("refund refund", lab.inject("silent_no_op", "shop", calls=[2]))
    assert (no_op.answer[1], no_op.effects) == ({"result": "refunded 17"}, [{"effect": "refund", "order": 17}])


def test_a_success_that_the_lab_makes_keeps_to_the_output_schema() -> None:
    trial = mcp_trial("price", lab.inject("silent_no_op", "shop", calls=[1]))
    assert trial.answer == [{"ok": True, "order": 17, "total": 0, "lines": []}]


def test_a_handshake_waits_for_a_service_that_is_paused() -> None:
    async def agent(_: str) -> Any:
        loop = asyncio.get_running_loop()
        began_s = loop.time()

        async def later() -> int:
            await asyncio.sleep(1.0)
            assert await mcp_agent("") == []  # a handshake, a list, a ping and an end
            return round(loop.time() - began_s)

        return await asyncio.gather(mcp_agent("price"), later())

    paused = lab.inject("service_paused", "shop", paused_s=4.0, calls=[1])
    trial = lab.run(agent, "x", services={"shop": lab.fresh(mcp_shop)}, faults=[paused])
    assert trial.answer == [[TRUE], 4]


def test_a_gateway_neither_numbers_nor_notes_a_session(tmp_path: Path) -> None:
    call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "refund", "arguments": {"order": 17}}}
    for faults in ([], [{"fault": "latency", "target": "crm", "delay_s": 0.01, "tool": "refund"}]):
        logs = tmp_path / str(len(faults))
        with (
            shop() as server,
            standing(logs, [f"crm={server.url}"], *faults) as running,
            httpx.Client(base_url=running.make_route_url("crm")) as client,
        ):
            client.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}})
            client.get("/mcp", headers={"Mcp-Session-Id": "1"})
            client.post("/mcp", json=call)
            client.delete("/mcp", headers={"Mcp-Session-Id": "1"})
        told = history(logs)
        assert [(event.at.request, event.tool) for _, event in told.find_events(CallStarted)] == [(1, "refund")]
        assert [(event.effect, event.content) for _, event in told.find_events(Effect)] == [("refund", {"order": 17})]


# JSON-RPC and GraphQL.


def rpc_shop(request: Any) -> Any:
    asked = request.json
    if asked["params"].get("order") == 99:
        return {"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -32000, "message": "no such order"}}
    return {"jsonrpc": "2.0", "id": asked["id"], "result": {"order": asked["params"]["order"], "total": 30}}


def rpc_agent(prompt: str) -> Any:
    body = {"jsonrpc": "2.0", "id": 7, "method": "refund", "params": {"order": int(prompt)}}
    said: Any = httpx.post("http://shop/rpc", json=body).json()
    assert said["id"] == 7
    return said.get("result", said.get("error"))


def graph_shop(request: Any) -> Any:
    asked = request.json
    if "none" in asked["query"]:
        return {"data": {"refund": None}, "errors": [{"message": "no such order"}]}
    field = "refund" if "mutation" in asked["query"] else "order"
    return {"data": {field: {"total": 30}}, "extensions": {"cost": 1}}


def graph_agent(prompt: str) -> Any:
    said: Any = httpx.post("http://shop/graphql", json={"query": prompt, "variables": {"id": 17}}).json()
    assert said.get("extensions", {"cost": 1}) == {"cost": 1}
    return said["data"]


MUTATION, QUERY = "mutation M($id: ID!) { refund(order: $id) { total } }", "query { order(id: 17) { total } }"


@pytest.mark.parametrize(
    ("agent", "service", "prompt", "tool", "effects"),
    [
        (rpc_agent, rpc_shop, "17", "refund", [{"effect": "refund", "order": 17}]),
        (rpc_agent, rpc_shop, "99", "refund", []),
        (graph_agent, graph_shop, MUTATION, "refund", [{"effect": "refund", "order": 17}]),
        (graph_agent, graph_shop, QUERY, "order", []),
        (graph_agent, graph_shop, MUTATION.replace("total", "none"), "refund", []),
    ],
)
def test_the_effects_are_those_of_the_tool(
    agent: Any, service: Any, prompt: str, tool: str, effects: list[Any]
) -> None:
    trial = lab.run(agent, prompt, services={"shop": service})
    assert trial.effects == effects
    assert [event.tool for _, event in trial.history.find_events(CallStarted)] == [tool]


@pytest.mark.parametrize(
    ("agent", "service", "prompt", "fault", "answer"),
    [
        (rpc_agent, rpc_shop, "17", lab.inject("empty", "shop", tool="refund"), {}),
        (rpc_agent, rpc_shop, "17", lab.inject("tool_error", "shop", status=503),
         {"code": -32000, "message": "503 Service Unavailable"}),
        (rpc_agent, rpc_shop, "17", lab.inject("silent_no_op", "shop"), {"ok": True, "order": 17}),
        (graph_agent, graph_shop, QUERY, lab.inject("wrong_value", "shop", tool="order", factor=2.0),
         {"order": {"total": 60}}),
        (graph_agent, graph_shop, QUERY, lab.inject("tool_error", "shop", status=503), {"order": None}),
        (graph_agent, graph_shop, MUTATION, lab.inject("silent_no_op", "shop"), {"refund": {"ok": True, "order": 17}}),
    ],
)  # fmt: skip
def test_a_fault_acts_on_the_result_of_a_method_and_of_a_field(
    agent: Any, service: Any, prompt: str, fault: Any, answer: Any
) -> None:
    trial = lab.run(agent, prompt, services={"shop": service}, faults=[fault])
    assert trial.answer == answer
    assert met(trial)


def test_a_call_that_the_tool_refuses_has_failed_and_asked_again_it_is_the_same_request() -> None:
    def agent(_: str) -> Any:
        return [rpc_agent("17"), rpc_agent("17")]

    fault = lab.inject("tool_error", "shop", calls=[1])
    trial = lab.run(agent, "x", services={"shop": rpc_shop}, faults=[fault], twin=False)
    assert [(event.at.request, event.at.attempt) for _, event in trial.history.find_events(CallStarted)] == [
        (1, 1),
        (1, 2),
    ]
    assert json.dumps(trial.answer[1]) == '{"order": 17, "total": 30}'


PLACE = {"target": "shop", "request": 1, "attempt": 1}
LINES: dict[str, tuple[Any, Any, str, list[dict[str, Any]]]] = {
    "JSON-RPC": (rpc_agent, rpc_shop, "17", [
        {"kind": "call_started", "tool": "refund", "arguments": {"order": 17}},
        {"kind": "fault_scheduled", "fault": "lost_reply", "injection": "f", "params": {}},
        {"kind": "effect", "tool": "refund", "effect": "refund", "content": {"order": 17}, "fingerprint": "", "reply": {
            "status": 200, "body": '{"jsonrpc": "2.0", "id": 7, "result": {"order": 17, "total": 30}}', "headers": {},
        }},
        {"kind": "fault_injected", "fault": "lost_reply", "injection": "f"},
        {"kind": "fault_witnessed", "fault": "lost_reply", "injection": "f",
         "evidence": "the work was done, no answer within 5 s", "changed": ""},
        {"kind": "call_finished", "tool": "refund", "ok": False, "duration_s": 5.0, "status": None,
         "error": "timed_out", "bytes": 0, "via": "service", "rolled": ["f"], "replayed": False, "reply": ""},
    ]),
    "GraphQL": (graph_agent, graph_shop, QUERY, [
        {"kind": "call_started", "tool": "order", "arguments": {"id": 17}},
        {"kind": "fault_scheduled", "fault": "unit_error", "injection": "f",
         "params": {"kind": "hundred", "factor": 0.0, "point": 0.10169574297270967}},
        {"kind": "fault_injected", "fault": "unit_error", "injection": "f"},
        {"kind": "fault_witnessed", "fault": "unit_error", "injection": "f",
         "evidence": "the changed reply reached the caller", "changed": "total 30 → 3000"},
        {"kind": "call_finished", "tool": "order", "ok": True, "duration_s": 0.0001, "status": 200, "error": None,
         "bytes": 134, "via": "service", "rolled": ["f"], "replayed": False,
         "reply": '{"data": {"order": {"total": 3000}}, "extensions": {"cost": 1}}'},
    ]),
    "MCP": (mcp_agent, lab.fresh(mcp_shop), "refund", [
        {"kind": "call_started", "tool": "refund", "arguments": {"order": 17}, "protocol": "mcp"},
        {"kind": "fault_scheduled", "fault": "server_error", "injection": "f", "params": {"status": 503}},
        {"kind": "fault_injected", "fault": "server_error", "injection": "f"},
        {"kind": "fault_witnessed", "fault": "server_error", "injection": "f",
         "evidence": "the service's own error 503 reached the caller", "changed": "not asked → 503"},
        {"kind": "call_finished", "tool": "refund", "ok": False, "duration_s": 0.0001, "status": 503,
         "error": "status 503", "bytes": 111, "via": "none", "rolled": ["f"], "replayed": False,
         "reply": '{"error": "status 503"}'},
    ]),
}  # fmt: skip


@pytest.mark.parametrize("name", LINES)
def test_the_lines_of_a_call_are_all_there_is_to_tell(name: str, tmp_path: Path) -> None:
    agent, service, prompt, lines = LINES[name]
    fault = lab.inject(
        next(line["fault"] for line in lines if "fault" in line), "shop", tool=lines[0]["tool"], name="f"
    )
    lab.run(agent, prompt, services={"shop": service}, faults=[fault], logs=tmp_path, anyway=True)
    logged = map(json.loads, (tmp_path / "latest" / "info.log").read_text().splitlines())
    without = {"ts", "t", "run", "trial", "writer", "seq", "turn", "request_id"}
    calls = [{key: line[key] for key in line.keys() - without} for line in logged if "attempt" in line]
    assert calls == [PLACE | line for line in lines]
