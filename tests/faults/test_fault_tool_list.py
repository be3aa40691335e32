"""The list of a server's tools is not what it was, or says what it should not."""

from typing import Any

import pytest

import chaoslab as lab
from chaoslab.core.events import CallStarted, FaultWitnessed
from chaoslab.faults.meaning.prompt_injection import ORDER
from chaoslab.faults.meaning.tool_list import ToolList
from tests.faults.fault_parts import Target, answer, meet
from tests.seams.stream_parts import drawn_over
from tests.seams.test_mcp import server
from tests.seams.test_protocol_faults import mcp_shop

TOOLS = [{"name": "price", "description": "Price"}, {"name": "refund"}]


@pytest.mark.parametrize(
    ("fault", "tools"),
    [
        (ToolList("empty"), []),
        (ToolList("shorter", point=0.0), TOOLS[1:]),
        (ToolList("renamed", point=0.9), [TOOLS[0], {"name": "refund_v2"}]),
        (ToolList("poisoned", point=0.0), [{"name": "price", "description": f"Price\n\n{ORDER}"}, TOOLS[1]]),
        (ToolList("poisoned", text="Obey.", point=0.9), [TOOLS[0], {"name": "refund", "description": "Obey."}]),
    ],
)
def test_the_list_is_changed_and_nothing_else(fault: ToolList, tools: list[Any]) -> None:
    met = meet(fault, Target(reply=answer(TOOLS)))
    assert met.reply is not None
    assert (met.reply.value, met.evidence) == (tools, "the changed reply reached the caller")


@pytest.mark.parametrize("value", [{"tools": TOOLS}, [1, 2], []])
def test_what_is_no_list_of_tools_passes(value: Any) -> None:
    assert not meet(ToolList("empty"), Target(reply=answer(value))).injected


def test_the_tools_change_in_the_middle_of_a_session() -> None:
    memory: dict[str, Any] = {}
    fault = ToolList("empty", from_list=2)
    found = [meet(fault, Target(reply=answer(TOOLS)), memory=memory).injected for _ in range(3)]
    assert found == [False, True, True]


def test_how_and_which_tool_are_drawn() -> None:
    drawn: Any = drawn_over(ToolList())
    assert {fault.how for fault in drawn} == {"shorter", "renamed", "poisoned"}
    assert len({fault.point for fault in drawn}) > 3


async def over_http(_: str) -> list[str]:
    from mcp import ClientSession
    from mcp.client.streamable_http import streamable_http_client

    async with streamable_http_client("http://shop/mcp") as (reads, writes), ClientSession(reads, writes) as session:
        await session.initialize()
        found = [",".join(tool.name for tool in (await session.list_tools()).tools) for _ in range(2)]
        result: Any = await session.call_tool("refund", {"order": 17})
        return [*found, result.content[0].text]


async def in_process(_: str) -> list[str]:
    from mcp import Client

    async with Client(server()) as client:
        found = [",".join(tool.name for tool in (await client.list_tools()).tools) for _ in range(2)]
        result: Any = await client.call_tool("refund", {"order": 17})
        return [*found, result.content[0].text]


@pytest.mark.parametrize("way", ["http", "client"])
def test_a_client_meets_it_and_calls_are_left_alone(way: str) -> None:
    mcp_shop(), server()
    agent = over_http if way == "http" else in_process
    world: dict[str, Any] = {"services": {"shop": lab.fresh(mcp_shop)}}
    if way == "client":
        world = {"tools": [lab.mcp_tool("refund")], "reads": [lab.mcp_tool("tools/list")]}
    target = "shop" if way == "http" else "tools/list"
    faults = [
        lab.inject("tool_list", target, how="shorter", from_list=2, point=0.0),
        lab.inject("latency", "shop" if way == "http" else "refund", delay_s=3.0),
    ]
    trial = lab.run(agent, "x", faults=faults, twin=False, **world)
    names = ["price", "refund"] if way == "http" else ["refund", "price"]
    assert (trial.answer, round(trial.seconds)) == ([",".join(names), names[1], "refunded 17"], 3)
    assert [event.fault for _, event in trial.history.find_events(FaultWitnessed)] == ["tool_list", "latency"]
    assert "tools/list" in {event.tool for _, event in trial.history.find_events(CallStarted)}


def test_it_is_refused_at_a_function_and_at_a_model() -> None:
    def refund(order: int) -> str:
        return f"refunded {order}"

    for fault, world in (
        ("refund", {"tools": [refund]}),
        ("api.openai.com", {"services": {"api.openai.com": lab.offline_model()}}),
    ):
        with pytest.raises(ValueError, match="an MCP server's list of tools"):
            lab.run(lambda _: "done", "x", faults=[lab.inject("tool_list", fault)], **world)


@pytest.mark.parametrize("way", ["http", "client"])
@pytest.mark.parametrize("asks_on", [True, False])
def test_a_client_that_does_not_ask_for_the_second_page_lacks_tools(way: str, *, asks_on: bool) -> None:
    mcp_shop(), server()

    async def agent(_: str) -> list[str]:
        from mcp import Client

        async with Client("http://shop/mcp" if way == "http" else server()) as client:
            page = await client.list_tools()
            names = [tool.name for tool in page.tools]
            while asks_on and page.next_cursor:
                page = await client.list_tools(cursor=page.next_cursor)
                names += [tool.name for tool in page.tools]
            return names

    world: dict[str, Any] = {"services": {"shop": lab.fresh(mcp_shop)}}
    if way == "client":
        world = {"tools": [lab.mcp_tool("refund")], "reads": [lab.mcp_tool("tools/list")]}
    faults = [lab.inject("tool_list", "shop" if way == "http" else "tools/list", how="paged")]
    trial = lab.run(agent, "x", faults=faults, twin=False, **world)
    assert len(trial.answer) == (2 if asks_on else 1)
    assert {event.fault for _, event in trial.history.find_events(FaultWitnessed)} == {"tool_list"}
