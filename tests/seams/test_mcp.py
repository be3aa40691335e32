"""The calls of an MCP client's sessions meet faults, and the client learns of them as MCP's clients do."""

import sys
from functools import cache
from typing import Any

import pytest

import chaoslab as lab
from chaoslab.core.events import CallFinished, FaultWitnessed


def refund(order: int) -> str:
    """Refunds an order."""
    return f"refunded {order}"


def price(order: int) -> dict[str, int]:
    """The price of an order."""
    if order == 99:
        raise ValueError("no such order")
    return {"order": order, "price": 30}


@cache
def server() -> Any:
    """The SDK is imported with the first test, since each worker collects all tests and few run these."""
    from mcp.server.mcpserver import MCPServer

    made = MCPServer("shop")
    for function in (refund, price):
        made.tool()(function)
    return made


async def agent(prompt: str) -> list[Any]:
    from mcp import Client, MCPError

    found: list[Any] = []
    async with Client(server()) as client:
        for tool in ("price", "refund"):
            try:
                result: Any = await client.call_tool(tool, {"order": int(prompt)})
                found.append(("error" if result.is_error else "ok", result.content[0].text, result.structured_content))
            except MCPError as error:
                found.append((error.code, error.message))
    return found


def trial_of(prompt: str = "17", **fault: Any) -> lab.Trial:
    tools: dict[str, Any] = {"tools": [lab.mcp_tool("refund")], "reads": [lab.mcp_tool("price")]}
    faults = [lab.inject(**fault, calls=[1])] if fault else []
    server()
    return lab.run(agent, prompt, faults=faults, **tools)


def test_calls_are_seen_by_name_whatever_the_transport() -> None:
    trial = trial_of()
    assert (trial.effects, trial.outcome) == ([{"effect": "refund", "order": 17}], lab.Outcome.CORRECT)
    assert trial.answer[1][:2] == ("ok", "refunded 17")
    assert [(event.target, event.ok) for _, event in trial.history.find_events(CallFinished)] == [
        ("price", True), ("refund", True),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("fault", "params", "answer", "seconds", "effects"),
    [
        ("lost_reply", {}, (-32001, "refund: no answer within its deadline"), 30, 1),
        ("refused", {}, (-32000, "Connection closed"), 0, 0),
        ("latency", {"delay_s": 2}, ("ok", "refunded 17"), 2, 1),
        ("silent_no_op", {}, ("ok", '{"ok": true, "order": 17}'), 0, 0),
        ("tool_error", {"status": 503}, ("error", "Error executing tool refund: 503 Service Unavailable"), 0, 0),
    ],
)
def test_a_fault_is_an_error_of_the_protocol_or_a_result_that_says_so(
    fault: str, params: dict[str, Any], answer: Any, seconds: float, effects: int
) -> None:
    trial = trial_of(fault=fault, target="refund", **params)
    assert (trial.answer[1][:2], trial.seconds, len(trial.effects)) == (answer, seconds, effects)
    assert [event.fault for _, event in trial.history.find_events(FaultWitnessed)] == [fault]


def test_a_wrong_value_is_wrong_in_the_text_and_in_the_structure() -> None:
    state, text, structure = trial_of(fault="wrong_value", target="price").answer[0]
    assert state == "ok"
    assert structure != {"order": 17, "price": 30}
    assert structure.keys() == {"order", "price"}
    assert str(structure["price"]) in text
    assert str(structure["order"]) in text


def test_a_tool_that_fails_by_itself_is_a_failed_call_without_effect() -> None:
    trial = trial_of("99")
    (_, called), *_ = trial.history.find_events(CallFinished)
    assert (called.target, called.ok, called.error) == ("price", False, "Error executing tool price")
    assert "failures that nobody" not in trial.why


def test_a_call_of_another_tool_goes_by() -> None:
    trial = lab.run(agent, "17", tools=[lab.mcp_tool("refund")], faults=[lab.inject("refused", "refund")])
    assert [event.target for _, event in trial.history.find_events(CallFinished)] == ["refund"]
    assert trial.answer[0][0] == "ok"


def test_a_name_that_is_none_is_refused() -> None:
    with pytest.raises(TypeError, match=r"^mcp_tool was given 3: it should be the tool's name, as in 'refund'$"):
        lab.mcp_tool(3)  # type: ignore[arg-type]


def test_without_the_sdk_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp.client.session", None)
    with pytest.raises(ImportError, match=r"^mcp_tool needs the MCP SDK, which is not installed: pip install mcp$"):
        lab.mcp_tool("refund")


# Tools that only read.


def told() -> Any:
    """The server, which says of `price` that it only reads."""
    from mcp.server.mcpserver import MCPServer
    from mcp.types import ToolAnnotations

    made = MCPServer("shop", log_level="ERROR")
    made.tool()(refund)
    made.tool(annotations=ToolAnnotations(read_only_hint=True))(price)
    return made


async def _asks(to: Any, *, listed: bool) -> str:
    from mcp import Client

    async with Client(to) as client:
        if listed:
            await client.list_tools()
        await client.call_tool("price", {"order": 17})
        await client.call_tool("refund", {"order": 17})
    return "done"


REFUND = [{"effect": "refund", "order": 17}]


@pytest.mark.parametrize("listed", [True, False])
def test_a_session_knows_from_the_list_of_tools_which_only_read(listed: bool) -> None:
    server, names = told(), ("refund", "price")
    trial = lab.run(lambda _: _asks(server, listed=listed), "go", tools=[lab.mcp_tool(name) for name in names])
    assert trial.effects == [*([] if listed else [{"effect": "price", "order": 17}]), *REFUND]


def test_a_servers_own_tool_says_so_itself() -> None:
    server = told()
    tools = server._tool_manager.list_tools()
    trial = lab.run(lambda _: _asks(server, listed=False), "go", tools=tools)
    assert (trial.effects, trial.warnings) == (REFUND, ())


@pytest.mark.parametrize(
    ("listed", "tools", "reads", "json"),
    [
        (True, [], [], False),
        (True, [], [], True),
        (False, [], ["price"], False),
        (True, ["refund"], ["price"], False),
        (True, ["refund", "price"], [], False),
    ],
    ids=["events", "json", "stated", "noted at both ends", "noted at both ends and listed"],
)
def test_over_http_an_effect_is_noted_once_and_none_for_a_tool_that_only_reads(
    listed: bool, tools: list[str], reads: list[str], json: bool
) -> None:
    def shop() -> Any:
        return told().streamable_http_app(host="shop", json_response=json)

    trial = lab.run(
        lambda _: _asks("http://shop/mcp", listed=listed), "go", services={"shop": lab.fresh(shop)},
        tools=[lab.mcp_tool(name) for name in tools], reads=[lab.mcp_tool(name) for name in reads],
    )  # fmt: skip
    assert (trial.effects, str(trial.outcome)) == (REFUND, "correct")
