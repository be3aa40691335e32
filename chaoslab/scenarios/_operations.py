"""Operations in place of an agent: calls of tools, one after the other, each a turn of a conversation."""

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from chaoslab.base.boundary import reraise_unless_foreign
from chaoslab.base.jsonable import describe_error, to_jsonable
from chaoslab.core.events import PromptFinished, TurnFinished
from chaoslab.record.history import History

if TYPE_CHECKING:
    from chaoslab.scenarios.spec import OperationSpec

FAILED = "I could not complete "
"""The beginning of the answer of an operation that failed."""


def describe_operation(operation: "OperationSpec") -> str:
    """The operation as the words of its turn, as in 'refund(order=17)'."""
    arguments = ", ".join(f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in operation.args.items())
    return f"{operation.tool}({arguments})"


@dataclass(frozen=True)
class ToolStep:
    """One call: a tool, its name, and its arguments."""

    tool: Any
    name: str
    args: Mapping[str, Any]


class Operations:
    """Stands for an agent: each turn does the next call, and its answer is the call's result as text."""

    def __init__(self, steps: Sequence[ToolStep]) -> None:
        self.tools = [step.tool for step in steps]
        self._steps, self._done = steps, 0

    def __call__(self, prompt: str) -> Any:  # noqa: ARG002 - the words tell the same
        number = self._done
        self._done += 1
        step = self._steps[number]
        try:
            result = _call_tool(self.tools[number], step.args)
        except BaseException as error:  # noqa: BLE001 - the user's own may raise anything
            reraise_unless_foreign(error)
            return _describe_failure(step, error)
        # An async tool is awaited by the seam, in the trial's own loop.
        return _await_result(step, result) if inspect.isawaitable(result) else _render_text(result)


def make_tool_agent_factory(steps: Sequence[ToolStep]) -> Callable[[], Operations]:
    """A function that makes the fake anew for each trial."""

    def make_tool_agent() -> Operations:
        return Operations(steps)

    return make_tool_agent


def _call_tool(tool: Any, args: Mapping[str, Any]) -> Any:
    if callable(tool):
        return tool(**args)
    return tool.invoke(dict(args))  # a tool of LangChain, which is no function


async def _await_result(step: ToolStep, awaitable: Any) -> str:
    try:
        return _render_text(await awaitable)
    except BaseException as error:  # noqa: BLE001 - as above
        reraise_unless_foreign(error)
        return _describe_failure(step, error)


def _describe_failure(step: ToolStep, error: BaseException) -> str:
    return f"{FAILED}{step.name}: {describe_error(error)}"


def describe_failed_operation(history: History) -> str:
    """The first operation of a trial that failed, with its error, as part of a line; empty if none did."""
    answers = [(event.turn, event.answer) for _, event in history.find_events(TurnFinished)]
    answers = answers or [(1, event.answer) for _, event in history.find_events(PromptFinished)]
    failure = next((pair for pair in answers if pair[1].startswith(FAILED)), None)
    return "" if failure is None else f"operation {failure[0]} failed: {failure[1].removeprefix(FAILED)}"


def _render_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(to_jsonable(value), ensure_ascii=False)
