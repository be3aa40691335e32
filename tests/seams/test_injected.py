"""An argument that a framework fills in is known by its annotation, and is left out of the call's record."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any, Generic, Optional, TypeVar

import pytest
from langchain_core.callbacks import CallbackManagerForToolRun, Callbacks
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import InjectedToolArg
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

import chaoslab as lab
from chaoslab.core.events import CallStarted
from chaoslab.seams.functions.inside import find_framework_parameters, find_self_parameter

if TYPE_CHECKING:
    import of_nobody  # type: ignore[import-not-found]
    import pydantic_ai

D = TypeVar("D")


class RunContext(Generic[D]):
    """As an agent's framework has it, which is not installed here."""


class ToolContext:
    """Another's."""


class Deeper(ToolContext):
    """A class of the user's own over it."""


class InjectedTenant:
    """A marker of a framework's own."""


class Context:
    """A class of the program's own: what it is given as this is an argument."""


def of(module: str) -> type:
    """A class called Context of that package."""
    return type("Context", (), {"__module__": module})


def plain(context: Context, order: int, runtime: str = "python", config: dict[str, Any] | None = None) -> None: ...
def first(ctx: RunContext[int], order: int) -> None: ...
def second(order: int, ctx: Deeper) -> None: ...
def marked(order: int, tenant: Annotated[str, InjectedTenant], seen: Annotated[str, "the order"]) -> None: ...
def made(
    order: int, tenant: Annotated[str, InjectedTenant()], trace: Annotated[str | None, InjectedToolArg] = None
) -> None: ...
def optional(order: int, ctx: Optional[ToolContext] = None, run: RunContext[int] | None = None) -> None: ...  # noqa: UP045
def untyped(order, ctx=None): ...  # type: ignore[no-untyped-def]
def only_typed(order: int, ctx: pydantic_ai.RunContext[int]) -> None: ...
def both(order: int, ctx: Annotated[of_nobody.Deps, InjectedTenant], deps: of_nobody.Deps) -> None: ...
def of_langchain(
    order: int, config: RunnableConfig, callbacks: Callbacks, run_manager: CallbackManagerForToolRun | None
) -> None: ...
def of_langgraph(order: int, store: BaseStore, mine: InMemoryStore, runtime: Runtime[Any]) -> None: ...


@pytest.mark.parametrize(
    ("function", "found"),
    [
        (plain, ""),
        (first, "ctx"),
        (second, "ctx"),
        (marked, "tenant"),
        (made, "tenant trace"),
        (optional, "ctx run"),
        (untyped, ""),
        (only_typed, "ctx"),
        (both, "ctx"),
        (of_langchain, "config callbacks run_manager"),
        (of_langgraph, "store mine runtime"),
        (len, ""),
        (dict, ""),
    ],
)
def test_what_is_injected(function: Callable[..., Any], found: str) -> None:
    assert find_framework_parameters(function) == frozenset(found.split())


@pytest.mark.parametrize(
    ("module", "found"), [("mcp.server.fastmcp", {"ctx"}), ("fastmcp", {"ctx"}), ("mcpx", set()), ("shop", set())]
)
def test_a_name_that_may_be_anybodys_counts_in_its_package(module: str, found: set[str]) -> None:
    def tool(order: int, ctx: Any) -> None: ...

    tool.__annotations__["ctx"] = of(module)
    assert find_framework_parameters(tool) == found


def test_nothing_is_imported_for_it() -> None:
    before = dict[str, ModuleType](sys.modules)
    find_framework_parameters(only_typed)
    assert sys.modules.keys() == before.keys()


class Desk:
    """A tool that is a method, and one that is an object."""

    def pay(self, ctx: RunContext[int], order: int) -> str:  # noqa: ARG002
        return f"paid {order}"

    async def __call__(self, order: int, *, ctx: RunContext[int]) -> str:  # noqa: ARG002
        return f"paid {order}"


def paid(ctx: RunContext[int], order: int, note: str = "") -> str:  # noqa: ARG001
    return f"paid {order}"


def test_a_call_that_is_tried_again_is_the_same_in_another_context() -> None:
    desk = Desk()

    def twice(call: Callable[[Any], Any]) -> Callable[[str], Any]:
        def agent(_: str) -> Any:
            try:
                return call(RunContext())
            except TimeoutError:
                return call(RunContext())

        return agent

    async def later(_: str) -> str:
        try:
            return await desk(17, ctx=RunContext())
        except TimeoutError:
            return await desk(order=17, ctx=RunContext())

    cases: list[tuple[Any, Any, dict[str, Any]]] = [
        (paid, twice(lambda ctx: paid(ctx, 17)), {"order": 17, "note": ""}),
        (desk.pay, twice(lambda ctx: desk.pay(ctx, order=17)), {"order": 17}),
        (desk, later, {"order": 17}),
    ]
    for tool, agent, told in cases:
        name = getattr(tool, "__name__", "Desk")
        trial = lab.run(agent, "go", tools=[tool], faults=[lab.inject("lost_reply", name, calls=[1])])
        begun = [call for _, call in trial.history.find_events(CallStarted)]
        assert [(call.request, call.attempt, call.arguments) for call in begun] == [(1, 1, told), (1, 2, told)]
        assert trial.effects == [{"effect": name, **told}] * 2
        assert "ctx" in inspect.signature(tool).parameters


def test_what_is_injected_is_no_part_of_a_stated_effect() -> None:
    with pytest.raises(LookupError, match="'ctx', no parameter of paid: known are note, order"):
        lab.run(lambda _: None, "go", tools=[paid], effects=[{"effect": "paid", "ctx": 1}])


class Shop:
    class Till:
        def pay(self, order: int) -> None: ...

    def order(self, number: int) -> None: ...

    @staticmethod
    def price(order: int) -> None: ...


def of_a_class_of_its_own() -> Callable[..., Any]:
    class Inner:
        def pay(own, order: int) -> None: ...

    return Inner.pay


@pytest.mark.parametrize(
    ("function", "names"),
    [
        (Shop.order, {"self"}),
        (Shop.Till.pay, {"self"}),
        (of_a_class_of_its_own(), {"own"}),
        (Shop.price, set()),
        (paid, set()),
        (lambda order: order, set()),
        (len, set()),
    ],
)
def test_the_object_of_a_method_is_given_by_its_class(function: Any, names: set[str]) -> None:
    assert find_self_parameter(function) == names
