"""A metric of another library as an assertion: any object with `measure(test_case)`, such as those of DeepEval."""

import importlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from chaoslab.analysis.assertions import SAID, Assertion, FinishedTrial, Miss
from chaoslab.analysis.opinion import Unjudged
from chaoslab.base.jsonable import describe_error, line, show_value
from chaoslab.core.events import CallStarted, PromptStarted, TurnStarted

LIBRARY = "deepeval"


@dataclass(frozen=True)
class ToolCall:
    """One attempt at a call of a tool, with the field names of DeepEval's class."""

    name: str
    input_parameters: Any = None


@dataclass(frozen=True)
class Measured:
    """A trial as a metric measures it, with the field names of DeepEval's `LLMTestCase`, which its metrics get instead.
    `input`: the user's words. `actual_output`: the agent's answer, empty if it gave none. `expected_output`: the answer
    of the trial without faults. `tools_called`: the attempts at calls, in time order."""

    input: str
    actual_output: str
    expected_output: str | None = None
    tools_called: Sequence[ToolCall] = field(default=())


@dataclass(frozen=True)
class ByMetric(Assertion):
    """Holds if the metric says that the trial succeeds. Success is `is_successful()`, else a score (what `measure`
    returns, or `score`) that reaches `threshold`. The reason is the metric's `reason`."""

    metric: Any

    def check(self, trial: FinishedTrial) -> Miss | None:
        """As `Assertion.check`. Raises Unjudged: the metric raises something, or gives no score."""
        metric = self.metric
        try:
            score: Any = metric.measure(_build_case(metric, trial))
            score = getattr(metric, "score", None) if score is None else score
            if callable(getattr(metric, "is_successful", None)):
                succeeded = bool(metric.is_successful())
            else:
                succeeded = float(score) >= float(metric.threshold)
        except Exception as error:
            raise Unjudged(line(f"{self} raised {describe_error(error)}", SAID)) from error
        if succeeded:
            return None
        reason = str(getattr(metric, "reason", None) or "")
        return trial.of_answer(line(f"the score is {show_value(score)}{f': {reason}' if reason else ''}", SAID))

    @property
    def name(self) -> str:
        return type(self.metric).__name__

    def __str__(self) -> str:
        return self.name


def _build_case(metric: Any, trial: FinishedTrial) -> Any:
    prompt_start = next((event for _, event in trial.of(PromptStarted)), None)
    turn = next((event for _, event in trial.of(TurnStarted) if event.turn == trial.turn), None)
    start = turn or prompt_start
    values = {
        "input": start.prompt if start is not None else "",
        "actual_output": trial.answer or "",
        "expected_output": prompt_start.twin if prompt_start is not None and trial.turn is None else None,
    }
    calls = [(event.tool, event.arguments) for _, event in trial.of(CallStarted)]
    case, call = _case_classes(metric)
    # DeepEval's class takes a mapping or None for the parameters.
    inputs = [(tool, arguments if isinstance(arguments, dict) else None) for tool, arguments in calls]
    return case(**values, tools_called=[call(name=tool, input_parameters=parameters) for tool, parameters in inputs])


def _case_classes(metric: Any) -> tuple[Any, Any]:
    """The classes of a test case and a call of a tool that the metric expects."""
    # Told by the modules of its bases, so that nothing is imported that may not be installed.
    if not any(base.__module__.partition(".")[0] == LIBRARY for base in type(metric).__mro__):
        return Measured, ToolCall
    test_case_module = importlib.import_module(f"{LIBRARY}.test_case")
    return test_case_module.LLMTestCase, test_case_module.ToolCall
