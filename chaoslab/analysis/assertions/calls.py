"""Assertions on the agent's calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from chaoslab.analysis.assertions import Assertion, Bounds, FinishedTrial, Miss, describe_no_call
from chaoslab.base.durations import format_duration
from chaoslab.base.jsonable import render_brief
from chaoslab.core.events import CallFinished


@dataclass(frozen=True)
class Called(Assertion):
    """`tool` (a name or a pattern) is called, `times` times if that is given. Further attempts at a request do not
    count."""

    tool: str
    times: int = 0
    bounds: ClassVar[Bounds] = {"times": (0, 10**9)}
    example = "{tool: refund, times: 1}"

    def check(self, trial: FinishedTrial) -> Miss | None:
        calls = [(record, event) for record, event in trial.started(self.tool) if event.attempt == 1]
        if (len(calls) == self.times) if self.times else calls:
            return None
        expected = f"{self.times} times" if self.times else "at least once"
        return Miss.from_located_events(f"{self.tool} was called {len(calls)} times, it should be {expected}", calls)


@dataclass(frozen=True)
class CalledInOrder(Assertion):
    """The first calls of these `tools` (names or patterns) come in this order."""

    tools: Sequence[str]
    example = "{tools: [get_order, refund]}"

    def check(self, trial: FinishedTrial) -> Miss | None:
        previous = None
        for tool in self.tools:
            calls = trial.started(tool)
            if not calls:
                return Miss(f"{tool} was not called")
            record = calls[0][0]
            if previous is not None and (record.t, record.seq) < (previous[1].t, previous[1].seq):
                return Miss.from_records(f"{tool} was called before {previous[0]}", record, previous[1])
            previous = tool, record
        return None


@dataclass(frozen=True)
class CalledWith(Assertion):
    """A call of `tool` (a name or a pattern) has these `arguments`, among others."""

    tool: str
    arguments: Mapping[str, Any]
    example = "{tool: refund, arguments: {order: 17}}"

    def check(self, trial: FinishedTrial) -> Miss | None:
        calls = trial.started(self.tool)
        if not calls:
            return Miss(f"{self.tool} was not called")
        for _, event in calls:
            arguments = event.arguments if isinstance(event.arguments, dict) else {}
            if all(key in arguments and arguments[key] == value for key, value in self.arguments.items()):
                return None
        actual = render_brief(calls[0][1].arguments, 120)
        expected = render_brief(dict(self.arguments), 120)
        return Miss.from_located_events(f"no call of {self.tool} has {expected}; the first has {actual}", calls)


@dataclass(frozen=True)
class NotCalled(Assertion):
    """`tool` (a name or a pattern) is never called."""

    tool: str
    example = "{tool: delete_*}"

    def check(self, trial: FinishedTrial) -> Miss | None:
        calls = trial.started(self.tool)
        return Miss.from_located_events(f"{calls[0][1].tool} was called {len(calls)} times", calls) if calls else None


@dataclass(frozen=True)
class MaxCalls(Assertion):
    """At most `calls` attempts at the calls of `tool` (a name or a pattern), retries included."""

    calls: int
    tool: str = "*"
    example = "{calls: 10, tool: refund}"

    def check(self, trial: FinishedTrial) -> Miss | None:
        calls = trial.started(self.tool)
        if len(calls) <= self.calls:
            return None
        noun = "call" if len(calls) == 1 else "calls"
        subject = noun if self.tool == "*" else f"{noun} of {self.tool}"
        return Miss.from_located_events(
            f"{len(calls)} {subject}, at most {self.calls} were allowed", calls[self.calls :]
        )


@dataclass(frozen=True)
class MaxRetries(Assertion):
    """Each request to `tool` (a name or a pattern) is tried again at most `retries` times. Attempts that
    the agent gave up are none."""

    retries: int
    tool: str = "*"
    bounds: ClassVar[Bounds] = {"retries": (0, 10**9)}
    example = "{retries: 2}"

    def check(self, trial: FinishedTrial) -> Miss | None:
        for record, event, number in trial.list_starts_with_attempt_number(self.tool):
            if number > self.retries + 1:
                message = f"{event.tool} {event.request} was tried again {number - 1} times"
                return Miss.from_records(f"{message}, at most {self.retries} were allowed", record)
        return None


@dataclass(frozen=True)
class Retried(Assertion):
    """Each request to `tool` (a name or a pattern) whose first attempt fails is tried again. A trial without a failure
    is a miss. A call that the agent gave up did not fail."""

    tool: str = "*"
    example = "{tool: search}"

    def check(self, trial: FinishedTrial) -> Miss | None:
        ended = trial.list_ends_with_attempt_number(self.tool)
        failed = {(e.target, e.request): (record, e.attempt) for record, e, n in ended if not e.ok and n == 1}
        if not failed:
            return Miss(f"{describe_no_call(self.tool)} failed, so there was nothing to try again")
        last = {(e.target, e.request): e.attempt for _, e in trial.started(self.tool)}
        for (target, request), (record, attempt) in failed.items():
            if last.get((target, request), 0) <= attempt:
                return Miss.from_records(f"{target} {request} failed and was not tried again", record)
        return None


SLACK_S = 0.001


@dataclass(frozen=True)
class BackedOff(Assertion):
    """Before each further attempt at a request of `tool` at least `least_s` seconds pass, and `factor` times as long as
    before the attempt before it. A trial without a further attempt is a miss. Attempts that the agent gave up are left
    out."""

    least_s: float = 0.1
    factor: float = 1.0
    tool: str = "*"
    bounds: ClassVar[Bounds] = {"least_s": (0, 1e9), "factor": (0, 1e6)}
    example = "{least_s: 0.5, factor: 1.5}"

    def check(self, trial: FinishedTrial) -> Miss | None:
        ends = {(e.target, e.request, n): record for record, e, n in trial.list_ends_with_attempt_number(self.tool)}
        waits: dict[tuple[str, int], float] = {}
        retries = [(record, e, n) for record, e, n in trial.list_starts_with_attempt_number(self.tool) if n > 1]
        if not retries:
            return Miss(f"{describe_no_call(self.tool)} was tried again, so nothing could wait")
        for record, event, number in retries:
            before = ends.get((event.target, event.request, number - 1))
            if before is None:
                continue
            wait_s, request = record.t - before.t, (event.target, event.request)
            least_s = max(self.least_s, self.factor * waits.get(request, 0.0))
            if wait_s < least_s - SLACK_S:
                label, minimum = f"{event.target} {event.request}.{event.attempt}", format_duration(least_s)
                message = (
                    f"{label} came {format_duration(wait_s)} after the failure before it, at least {minimum} were "
                    "asked for"
                )
                return Miss.from_records(message, before, record)
            waits[request] = wait_s
        return None


@dataclass(frozen=True)
class Slo(Assertion):
    """At least `share` of the calls of `tool` (a name or a pattern) succeed within `within_s` seconds, each attempt
    counted that the agent did not give up. A trial without such a call is a miss."""

    share: float
    within_s: float = 1e9
    tool: str = "*"
    bounds: ClassVar[Bounds] = {"share": (0, 1), "within_s": (0, 1e15)}
    example = "{share: 0.9, within_s: 2, tool: search}"

    def check(self, trial: FinishedTrial) -> Miss | None:
        ended = trial.list_ends_with_attempt_number(self.tool)
        if not ended:
            return Miss(f"there was {describe_no_call(self.tool)}")
        bad_records = [record for record, event, _ in ended if not self.is_good_call(event)]
        good_share = 1 - len(bad_records) / len(ended)
        if good_share >= self.share:
            return None
        return Miss.from_records(
            f"{good_share:.0%} of {len(ended)} calls were good, at least {self.share:.0%} were asked for", *bad_records
        )

    def is_good_call(self, event: CallFinished) -> bool:
        """True if the call succeeded, in time."""
        return event.ok and event.duration_s <= self.within_s
