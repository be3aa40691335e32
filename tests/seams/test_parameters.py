"""What a framework passes along is no argument of a request: a retried call is the same call."""

from __future__ import annotations

import inspect
from typing import Annotated, Any, Optional

import pytest
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import InjectedToolArg, InjectedToolCallId

import chaoslab as lab
from chaoslab.seams.parameters import passed_along


class RunContext:
    """As PydanticAI's."""


class ToolContext:
    """As the OpenAI Agents SDK's."""


class Order:
    def cancel(self, number: int) -> None: ...


def named(order: int, ctx: RunContext) -> None: ...
def written(order: int, ctx: "RunContextWrapper[Any]") -> None: ...  # type: ignore[name-defined]  # noqa: F821, UP037
def optional(order: int, config: Optional[RunnableConfig] = None) -> None: ...  # noqa: UP045
def either(order: int, context: ToolContext | None = None) -> None: ...
def marked(order: int, call_id: Annotated[str, InjectedToolCallId]) -> None: ...
def made(order: int, user: Annotated[str, InjectedToolArg()]) -> None: ...
def plain(order: int, context: str, runtime: float = 0.0) -> None: ...


@pytest.mark.parametrize(
    ("function", "left_out"),
    [
        (named, {"ctx"}),
        (written, {"ctx"}),
        (optional, {"config"}),
        (either, {"context"}),
        (marked, {"call_id"}),
        (made, {"user"}),
        (plain, set()),
        (Order.cancel, {"self"}),
        (Order().cancel, set()),
        (print, set()),
    ],
    ids=lambda value: getattr(value, "__qualname__", ""),
)
@pytest.mark.parametrize("evaluated", [False, True], ids=["as text", "as types"])
def test_parameters_that_a_framework_fills_are_left_out(function: Any, left_out: set[str], evaluated: bool) -> None:
    simple = function in (named, optional, either, marked, made, plain)
    assert passed_along(typed(function) if evaluated and simple else function) == left_out


def typed(function: Any) -> Any:
    """The same with types for annotations, as in a module whose annotations are evaluated at once."""

    def same(*_: Any) -> None: ...

    same.__signature__ = inspect.signature(function, eval_str=True)  # type: ignore[attr-defined]
    return same


def test_a_call_that_is_tried_again_with_another_context_is_the_same_call() -> None:
    tried: list[object] = []

    def charge(amount: int, ctx: RunContext) -> str:
        tried.append(ctx)
        return f"charged {amount}"

    def agent(_: str) -> str:
        try:
            return charge(30, RunContext())
        except TimeoutError:
            return charge(30, RunContext())

    trial = lab.run(agent, "go", tools=[charge], faults=[lab.inject("lost_reply", "charge", calls=[1])])
    assert trial.effects == [{"effect": "charge", "amount": 30}] * 2
    assert (trial.outcome, trial.why) == (lab.Outcome.HARM, "charge twice")
    assert len(set(map(id, tried))) == len(tried)
