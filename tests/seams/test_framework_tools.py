"""The tool objects of frameworks, called as the frameworks call them: seen, named, numbered and broken.

Frameworks that are not installed here are tried by `make frameworks`.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from langchain_core.tools import tool as langchain_tool

import chaoslab as lab
from chaoslab.core.events import CallFinished, FaultWitnessed
from chaoslab.execution.agents.functions import get_function_name

if TYPE_CHECKING:
    import pydantic_ai
    from agents import RunContextWrapper
    from agents.tool_context import ToolContext
    from mcp.server.mcpserver import Context


@pytest.fixture(scope="module", autouse=True)
def annotated() -> None:
    """The names that the frameworks look up in this module for its functions' annotations.

    Imported with the first test, since each worker collects all tests and few run these.
    """
    import pydantic_ai
    from agents import RunContextWrapper
    from agents.tool_context import ToolContext
    from mcp.server.mcpserver import Context

    globals().update(
        pydantic_ai=pydantic_ai, RunContextWrapper=RunContextWrapper, ToolContext=ToolContext, Context=Context
    )


def refund(order: int, amount: float = 1.0) -> str:  # noqa: ARG001
    """Refunds an order.

    Args:
        order: the order
        amount: the amount
    """
    return f"refunded {order}"


async def refund_later(order: int) -> str:
    """Refunds an order.

    Args:
        order: the order
    """
    return f"refunded {order}"


async def with_wrapper(context: RunContextWrapper[Any], order: int) -> str:
    """Refunds an order."""
    return f"refunded {order} {context is not None}"


def with_run(context: pydantic_ai.RunContext[str], order: int) -> str:
    """Refunds an order."""
    return f"refunded {order} {context is not None}"


def with_server(order: int, context: Context) -> str:
    """Refunds an order."""
    return f"refunded {order} {context is not None}"


Called = Callable[[dict[str, Any]], Awaitable[Any]]


def of_openai_agents(function: Callable[..., Any]) -> tuple[Any, Called]:
    from agents import function_tool

    made = function_tool(function)

    async def call(arguments: dict[str, Any]) -> Any:
        spelt = json.dumps(arguments)
        context = ToolContext(context=None, tool_name=made.name, tool_call_id="1", tool_arguments=spelt)
        return await made.on_invoke_tool(context, spelt)

    return made, call


def of_pydantic_ai(function: Callable[..., Any]) -> tuple[Any, Called]:
    made: Any = pydantic_ai.Tool(function)

    async def call(arguments: dict[str, Any]) -> Any:
        valid = made.function_schema.validator.validate_python(arguments)
        return await made.function_schema.call(valid, SimpleNamespace())

    return made, call


def of_anthropic(function: Callable[..., Any]) -> tuple[Any, Called]:
    import anthropic

    made: Any = anthropic.beta_async_tool(function) if function is refund_later else anthropic.beta_tool(function)

    async def call(arguments: dict[str, Any]) -> Any:
        result = made.call(arguments)
        return await result if function is refund_later else result

    return made, call


def of_mcp(function: Callable[..., Any]) -> tuple[Any, Called]:
    from mcp.server.mcpserver import MCPServer

    server = MCPServer("shop")
    server.add_tool(function)

    async def call(arguments: dict[str, Any]) -> Any:
        result: Any = await server.call_tool(function.__name__, arguments)
        return result.content[0].text

    return server._tool_manager.list_tools()[0], call


def of_langchain(function: Callable[..., Any]) -> tuple[Any, Called]:
    made: Any = langchain_tool(function)
    return made, made.ainvoke


CASES = [
    (of_openai_agents, refund), (of_openai_agents, refund_later), (of_openai_agents, with_wrapper),
    (of_pydantic_ai, refund), (of_pydantic_ai, refund_later), (of_pydantic_ai, with_run),
    (of_anthropic, refund), (of_anthropic, refund_later),
    (of_mcp, refund), (of_mcp, refund_later), (of_mcp, with_server),
    (of_langchain, refund), (of_langchain, refund_later),
]  # fmt: skip


@pytest.mark.parametrize(("make", "function"), CASES, ids=[f"{m.__name__}-{f.__name__}" for m, f in CASES])
def test_a_tool_object_is_seen_named_and_broken(make: Any, function: Callable[..., Any]) -> None:
    tool, call = make(function)
    code = function.__code__

    async def agent(_: str) -> str:
        try:
            return str(await call({"order": 17}))
        except Exception as error:  # noqa: BLE001 - each framework has its own way
            return f"failed: {error}"

    name = get_function_name(tool)
    assert name == function.__name__
    trial = lab.run(agent, "go", tools=[tool])
    wanted = {"effect": name, "order": 17} | ({"amount": 1.0} if function is refund else {})
    assert (trial.effects, trial.warnings, trial.outcome) == ([wanted], (), lab.Outcome.CORRECT)
    assert trial.answer.startswith("refunded 17")

    lost = lab.run(agent, "go", tools=[tool], faults=[lab.inject("lost_reply", name)])
    assert [event.fault for _, event in lost.history.find_events(FaultWitnessed)] == ["lost_reply"]
    assert (lost.effects, lost.seconds) == ([wanted], 30)
    assert "refunded" not in lost.answer
    assert function.__code__ is code


def test_a_tool_object_made_by_hand_is_the_function_that_the_sdk_calls() -> None:
    from agents import FunctionTool

    async def invoked(context: ToolContext[Any], arguments: str) -> str:
        return f"{arguments} {context is not None}"

    tool = FunctionTool("by_hand", "Refunds.", {"properties": {"order": {"type": "integer"}}}, invoked)

    async def agent(_: str) -> str:
        spelt = '{"order": 17}'
        context = ToolContext(context=None, tool_name="by_hand", tool_call_id="1", tool_arguments=spelt)
        return str(await tool.on_invoke_tool(context, spelt))

    trial = lab.run(agent, "go", tools=[tool])
    assert trial.effects == [{"effect": "by_hand", "arguments": '{"order": 17}'}]


def test_two_tools_of_one_framework_have_names_of_their_own() -> None:
    from agents import function_tool

    refunding, (later, _) = function_tool(refund, name_override="pay_back"), of_openai_agents(refund_later)
    trial = lab.run(lambda _: "nothing", "go", tools=[refunding, later], effects=[])
    assert trial.warnings[0].startswith("pay_back and refund_later were never called")


def test_a_function_may_be_given_in_place_of_the_tool_that_holds_it() -> None:
    _, call = of_pydantic_ai(refund)

    async def agent(_: str) -> Any:
        return await call({"order": 17})

    trial = lab.run(agent, "go", tools=[refund], faults=[lab.inject("latency", "refund", delay_s=2)])
    assert (trial.effects, trial.seconds) == ([{"effect": "refund", "order": 17, "amount": 1.0}], 2)
    assert [event.ok for _, event in trial.history.find_events(CallFinished)] == [True]


def test_an_object_of_no_known_framework_is_refused_with_what_to_give() -> None:
    with pytest.raises(TypeError) as told:
        lab.run(lambda _: "go", "go", tools=[SimpleNamespace(name="refund", run=refund)])
    assert str(told.value).startswith("tools has namespace(name='refund', run=<function refund at")
    assert str(told.value).endswith("give the function that its tool calls, as in tools={'refund': tool.run}")
