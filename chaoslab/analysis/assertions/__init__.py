"""The base of assertions: a statement about a finished trial that holds, or is missed with a reason."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from types import UnionType
from typing import Any, ClassVar, TypeVar, Union, get_origin, get_type_hints

from chaoslab.analysis.opinion import Ask, Opinion, Unjudged, raise_no_judge
from chaoslab.analysis.verdict.ledger import describe_log_lines
from chaoslab.analysis.verdict.table import Verdict
from chaoslab.base.former import ASSERTIONS
from chaoslab.base.jsonable import describe_error, repr_one_line, to_one_line
from chaoslab.base.registry import list_plugins, make_broken_plugin_error, suggest_name, to_snake_case
from chaoslab.base.registry import load_plugin as load_plugin
from chaoslab.core import events
from chaoslab.record.history import History
from chaoslab.record.lines import Record

GROUP = "analysis.assertions"
FAMILIES = ("answers", "calls", "effects", "ends", "spending")
NUMBER_MAX = 1e15
"""The largest value of a parameter that has no bounds of its own."""
SAID = 300
"""The most characters of a reason that a function gives."""
E_ = TypeVar("E_", bound=events.Event)


@dataclass(frozen=True)
class Miss:
    """The reason why an assertion does not hold.

    `text`: the observation, in one line. `lines`: the lines of the log that show it, each as its writer and `seq`.
    """

    text: str
    lines: tuple[tuple[str, int], ...] = ()

    @classmethod
    def from_records(cls, text: str, *records: Record) -> Miss:
        return cls(text, tuple((record.writer, record.seq) for record in records))

    @classmethod
    def from_located_events(cls, text: str, located: Sequence[tuple[Record, Any]]) -> Miss:
        """The miss that the lines of these events show."""
        return cls.from_records(text, *(record for record, _ in located))

    @classmethod
    def from_unstated_usage(cls, usage: events.UsageUnstated, record: Record) -> Miss:
        """The miss of a limit on tokens or dollars by an answer that does not state its usage."""
        about = usage.prompt_tokens + usage.completion_tokens
        return cls.from_records(
            f"{usage.why}; estimated: true judges it by the lab's estimate of {about} tokens", record
        )

    @property
    def where(self) -> str:
        """The lines of the log, as in "info.log 4, 9"; empty if there are none."""
        return describe_log_lines(self.lines)


@dataclass(frozen=True)
class FinishedTrial:
    """A finished trial, as assertions see it.

    `history`: the events of this trial. `twin`: those of the trial without faults; None if there was none. `turn`: the
    turn that is looked at; None for the whole trial.
    """

    history: History
    trial: str
    verdict: Verdict
    twin: History | None = None
    turn: int | None = None
    opinions: list[Opinion] = field(default_factory=list, compare=False)
    """The opinions that assertions asked for, in their order."""
    ask: Ask = field(default=raise_no_judge, compare=False)
    """Asks the model of the environment; an assertion itself does no input or output."""
    result: Any = field(default=None, compare=False)
    """The `Trial`, which functions get that are assertions; None for one that was read from a log."""

    def iterate_events_of_kind(self, kind: type[E_]) -> Iterator[tuple[Record, E_]]:
        """The events of one kind in time order; with a `turn`, of attempts in that turn only."""
        for record, event in self.history.find_events(kind, trial=self.trial):
            if self.turn is None or not isinstance(event, events.AttemptEvent) or event.at.turn == self.turn:
                yield record, event

    def iterate_model_usage(self) -> Iterator[tuple[Record, events.Usage | events.UsageUnstated]]:
        """The usage of the model's answers in time order, of those too that do not state it."""
        for record in self.history.records:
            if record.trial == self.trial and isinstance(record.event, events.Usage | events.UsageUnstated):
                yield record, record.event

    def started(self, tool: str = "*") -> list[tuple[Record, events.CallStarted]]:
        """The attempts at calls of a tool, a target, or a pattern such as "get_*"."""
        return [
            attempt
            for attempt in self.iterate_events_of_kind(events.CallStarted)
            if matches_tool_or_target(attempt[1], tool)
        ]

    def finished(self, tool: str = "*") -> list[tuple[Record, events.CallFinished]]:
        """The ends of attempts at calls of a tool, a target, or a pattern."""
        return [
            attempt
            for attempt in self.iterate_events_of_kind(events.CallFinished)
            if matches_tool_or_target(attempt[1], tool)
        ]

    def effects(self, effect: str = "*") -> list[tuple[Record, events.Effect]]:
        """The effects of a name or a pattern; lines of one request are one effect."""
        from chaoslab.analysis.verdict.ledger import find_recorded_effects

        return [
            entry for entry in find_recorded_effects(self.history, self.trial) if fnmatchcase(entry[1].effect, effect)
        ]

    def list_starts_with_attempt_number(self, tool: str = "*") -> list[tuple[Record, events.CallStarted, int]]:
        """The attempts of `started` without those that were given up, each with its number among the others at its
        request."""
        return [(record, event, n) for record, event in self.started(tool) if (n := self._number_attempt(event))]

    def list_ends_with_attempt_number(self, tool: str = "*") -> list[tuple[Record, events.CallFinished, int]]:
        """The ends of `finished` without those that were given up, which neither failed nor succeeded, each with the
        number of its attempt as in `list_starts_with_attempt_number`."""
        return [(record, event, n) for record, event in self.finished(tool) if (n := self._number_attempt(event))]

    def _number_attempt(self, event: events.CallStarted | events.CallFinished) -> int:
        """The number of an attempt among those at its request that were not given up; 0 if it was."""
        dropped_attempts = self._given_up_attempts.get((event.target, event.request), ())
        return (
            0
            if event.attempt in dropped_attempts
            else event.attempt - sum(dropped < event.attempt for dropped in dropped_attempts)
        )

    @cached_property
    def _given_up_attempts(self) -> Mapping[tuple[str, int], Sequence[int]]:
        """The attempts that were given up, by target and request."""
        attempts: dict[tuple[str, int], list[int]] = {}
        for trial, target, request, attempt in self.history.given_up_attempts:
            if trial == self.trial:
                attempts.setdefault((target, request), []).append(attempt)
        return attempts

    @cached_property
    def end(self) -> tuple[Record, events.PromptFinished] | None:
        """The end of the trial; None if it did not end."""
        return next(iter(self.history.find_events(events.PromptFinished, trial=self.trial)), None)

    @property
    def answer_event(self) -> tuple[Record, events.TurnFinished | events.PromptFinished] | None:
        """The event with the agent's answer, of the turn if one is looked at; None if it gave none."""
        if self.turn is not None:
            turns = self.history.find_events(events.TurnFinished, trial=self.trial)
            return next(((record, event) for record, event in turns if event.turn == self.turn), None)
        return self.end if self.end is not None and self.end[1].status == "ok" else None

    @property
    def answer(self) -> str | None:
        """The agent's answer, in the turn if one is looked at; None if it gave none."""
        return None if self.answer_event is None else self.answer_event[1].answer

    def make_answer_miss(self, text: str) -> Miss:
        """A miss that the answer's line shows."""
        return Miss.from_records(text, *([self.answer_event[0]] if self.answer_event is not None else []))


def describe_no_call(tool: str) -> str:
    """No call of a tool, in words; of any for "*"."""
    return f"no call{'' if tool == '*' else f' of {tool}'}"


def matches_tool_or_target(event: events.CallStarted | events.CallFinished, pattern: str) -> bool:
    """True if the event's tool or target has this name, or matches this pattern."""
    return fnmatchcase(event.tool, pattern) or fnmatchcase(event.target, pattern)


Bounds = Mapping[str, tuple[float, float]]
"""The least and the greatest value of a parameter, by its name."""


class Assertion:
    """One statement about a trial; an instance holds its parameters. Subclasses are frozen dataclasses.

    `bounds`: the least and the greatest value of a parameter, by name. `example`: its parameters in a scenario's file.
    `asks`: it asks a model, at a cost.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    bounds: ClassVar[Bounds] = {}
    example: ClassVar[str] = ""
    asks: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Checks the types and bounds of the parameters. Raises ValueError: one is wrong."""
        hints = get_type_hints(type(self))
        for parameter in fields(self):
            value, hint = getattr(self, parameter.name), hints[parameter.name]
            if should := _describe_type_mismatch(hint, value, self.bounds.get(parameter.name, (0, NUMBER_MAX))):
                raise ValueError(f"{parameter.name} of {self.name} is {value!r:.60}: it should be {should}")

    def check(self, trial: FinishedTrial) -> Miss | None:
        """The reason why it does not hold; None if it does."""
        raise NotImplementedError

    @property
    def name(self) -> str:
        module = type(self).__module__
        return to_snake_case(type(self).__name__) if module.startswith(__name__) else module.rpartition(".")[2]

    def __str__(self) -> str:
        """The assertion as it was stated, without parameters that have their default."""
        parameters = [f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if getattr(self, f.name) != f.default]
        return f"{self.name}({', '.join(parameters)})"


@dataclass(frozen=True)
class FunctionAssertion(Assertion):
    """The user's own function of a `Trial` as an assertion.

    It holds if the function returns True or None, and is missed if it returns False or a text, which is the reason, or
    raises AssertionError.
    """

    function: Callable[[Any], Any]

    def check(self, trial: FinishedTrial) -> Miss | None:
        """As `Assertion.check`. Raises Unjudged: the function raises something else, or returns something else."""
        try:
            result = self.function(trial.result)
        except AssertionError as error:
            return Miss(to_one_line(str(error) or f"AssertionError {_describe_location(error)}", SAID))
        except Exception as error:
            raise Unjudged(
                to_one_line(f"{self} raised {describe_error(error)} {_describe_location(error)}", SAID)
            ) from error
        if result is None or isinstance(result, str):
            return Miss(to_one_line(result, SAID)) if result else None
        if type(result).__name__ not in ("bool", "bool_"):  # numpy has its own
            raise Unjudged(f"{self} returned {repr_one_line(result)}: it should return True, False, None or a text")
        return None if result else Miss("it returned False")

    @property
    def name(self) -> str:
        return str(getattr(self.function, "__qualname__", type(self.function).__name__)).rpartition(".<locals>.")[2]

    def __str__(self) -> str:
        return self.name


def _describe_location(error: Exception) -> str:
    """The line that raised it."""
    at = traceback.extract_tb(error.__traceback__)[-1]
    return f"at {Path(at.filename).name}:{at.lineno}"


def _describe_type_mismatch(hint: Any, value: Any, bounds: tuple[float, float]) -> str:
    """The values that a parameter takes, in words; empty if this is one of them."""
    if hint in (int, float):
        low, high = bounds
        a_number = f"a {'whole ' if hint is int else ''}number, {low:g} or more"
        a_number = a_number if high >= NUMBER_MAX else f"{a_number} and at most {high:g}"
        kinds = (int,) if hint is int else (int, float)
        return "" if isinstance(value, kinds) and not isinstance(value, bool) and low <= value <= high else a_number
    if hint is str:
        return "" if isinstance(value, str) else "a text"
    if hint is bool:
        return "" if isinstance(value, bool) else "true or false"
    if get_origin(hint) is Mapping:
        return "" if isinstance(value, Mapping) else "a mapping"
    texts = (
        isinstance(value, list | tuple) and value and all(isinstance(element, str | int | float) for element in value)
    )
    if hint == Sequence[str]:
        return "" if texts and all(isinstance(element, str) for element in value) else "a list of texts"
    if get_origin(hint) in (Union, UnionType):
        return "" if texts or (isinstance(value, str) and value) else "a text, or a list of them"
    if get_origin(hint) is Sequence:
        is_valid = isinstance(value, list | tuple) and all(isinstance(element, Mapping) for element in value)
        return "" if is_valid else "a list of mappings"
    return ""


def load_assertion(name: str) -> type[Assertion]:
    """The class of the assertion of this name. Raises LookupError: there is no such assertion, or it cannot be used."""
    if name in ASSERTIONS:
        raise LookupError(f"there is no {name} any more: {ASSERTIONS[name]}")
    assertion = load_plugin(GROUP, name)
    if not (isinstance(assertion, type) and is_dataclass(assertion) and issubclass(assertion, Assertion)):
        raise make_broken_plugin_error(
            GROUP, name, "it is no dataclass that derives from chaoslab.analysis.assertions.Assertion"
        )
    return assertion


def build_assertion(name: str, params: Any) -> Assertion:
    """The assertion of this name with parameters from plain data: a mapping, or the value of the first one. Raises
    LookupError: there is no such assertion. ValueError: a parameter is missing, unknown or wrong."""
    assertion = load_assertion(name)
    parameters = {parameter.name: parameter for parameter in fields(assertion)}
    # A mapping is the value itself where the only parameter takes one.
    if not isinstance(params, Mapping) or (len(parameters) == 1 and _takes_mapping(assertion)):
        if not parameters:
            raise ValueError(f"{name} has no parameters")
        params = {next(iter(parameters)): params}
    for key in params:
        if key not in parameters:
            hint = suggest_name(str(key), parameters) if parameters else "it has none"
            raise ValueError(f"{name} has no parameter '{key!s:.60}': {hint}")
    for parameter in parameters.values():
        if parameter.name not in params and parameter.default is MISSING and parameter.default_factory is MISSING:
            raise ValueError(
                f"{parameter.name} of {name} is missing, as in {name}: {assertion.example or parameter.name}"
            )
    return assertion(**params)


def serialize_assertion(assertion: Assertion) -> Any:
    """The assertion as a scenario's file has it, so that `build_assertion` makes it again."""
    changed = {f.name: getattr(assertion, f.name) for f in fields(assertion) if getattr(assertion, f.name) != f.default}
    if len(fields(assertion)) == 1 and changed and _takes_mapping(type(assertion)):
        (changed,) = changed.values()
    return {assertion.name: changed} if changed or not isinstance(changed, dict) else assertion.name


def _takes_mapping(assertion: type[Assertion]) -> bool:
    (parameter,) = fields(assertion)
    hint = get_type_hints(assertion)[parameter.name]
    return hint is Any or get_origin(hint) is Mapping


class Expect:
    """The assertions by name, for Python: `lab.expect.max_calls(5)`."""

    def __getattr__(self, name: str) -> Callable[..., Assertion]:
        # Python asks for such names by itself, as when it copies an object.
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return load_assertion(name)
        except LookupError as error:
            raise AttributeError(str(error)) from None

    def __dir__(self) -> list[str]:
        return list(list_plugins(GROUP))


expect = Expect()
