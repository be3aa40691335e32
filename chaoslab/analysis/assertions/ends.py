"""Assertions on a trial's end, its time, and the faults it met."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import ClassVar

from chaoslab.analysis.assertions import Assertion, Bounds, FinishedTrial, Miss
from chaoslab.analysis.measures.incidents import HARMED, Ending, find_incidents, severity_key
from chaoslab.analysis.verdict import table
from chaoslab.analysis.verdict._spoilt import find_outage_failures
from chaoslab.base.registry import suggest_name
from chaoslab.core.events import FaultHealed, FaultScheduled, FaultWitnessed


@dataclass(frozen=True)
class Outcome(Assertion):
    """The outcome is one of these."""

    outcomes: str | Sequence[str]
    example = "{outcomes: [correct, degraded]}"

    def check(self, trial: FinishedTrial) -> Miss | None:
        expected = [self.outcomes] if isinstance(self.outcomes, str) else list(self.outcomes)
        if str(trial.verdict.outcome) in expected:
            return None
        return Miss(f"the outcome is {trial.verdict.outcome} instead of {' or '.join(expected)}: {trial.verdict.why}")

    def __post_init__(self) -> None:
        super().__post_init__()
        outcomes = [str(outcome) for outcome in table.Outcome]
        for outcome in [self.outcomes] if isinstance(self.outcomes, str) else self.outcomes:
            if outcome not in outcomes:
                raise ValueError(f"no outcome is called '{outcome!s:.60}': {suggest_name(str(outcome), outcomes)}")


@dataclass(frozen=True)
class ErrorType(Assertion):
    """The trial ends with this kind of error: none, agent, budget, hung, or that of the lab's agent."""

    kind: str
    example = "{kind: none}"

    def check(self, trial: FinishedTrial) -> Miss | None:
        if trial.end is None:
            return Miss("the trial did not end")
        record, end = trial.end
        if end.error_type == self.kind:
            return None
        return Miss.from_records(f"it ended with {end.error_type} instead of {self.kind}", record)


@dataclass(frozen=True)
class CompletesWithin(Assertion):
    """The trial takes at most `seconds`, in its world's time."""

    seconds: float
    bounds: ClassVar[Bounds] = {"seconds": (0, 1e15)}
    example = "{seconds: 60}"

    def check(self, trial: FinishedTrial) -> Miss | None:
        if trial.end is None:
            return Miss("the trial did not end")
        record, end = trial.end
        if end.duration_s <= self.seconds:
            return None
        return Miss.from_records(f"it took {end.duration_s:g} s, at most {self.seconds:g} s were allowed", record)


@dataclass(frozen=True)
class RecoveredWithin(Assertion):
    """Each request that met a fault gets a right result at most `seconds` after that attempt began, without a repeated
    effect. A trial without a fault that anything could recover from is a miss."""

    seconds: float
    tool: str = "*"
    bounds: ClassVar[Bounds] = {"seconds": (0, 1e15)}
    example = "{seconds: 10, tool: search}"

    def check(self, trial: FinishedTrial) -> Miss | None:
        matches = [incident for incident in find_incidents(trial.history) if fnmatchcase(incident.target, self.tool)]
        if not matches:
            return Miss("no fault was met that anything could recover from")
        for incident in sorted(matches, key=severity_key, reverse=True):
            request = f"request {incident.request} to {incident.target}"
            if incident.ending is Ending.HARM:
                return Miss(f"{request} recovered from {incident.fault} with harm: {HARMED}")
            if not incident.recovered:
                return Miss(f"{request} never recovered from {incident.fault}")
            if incident.duration_s > self.seconds:
                took = f"{request} took {incident.duration_s:g} s to recover from {incident.fault}"
                return Miss(f"{took}, at most {self.seconds:g} s were allowed")
        return None


@dataclass(frozen=True)
class AtLeastOneFault(Assertion):
    """At least one `fault` (a name or a pattern) is witnessed at `target` (a name or a pattern)."""

    fault: str = "*"
    target: str = "*"
    example = "{fault: lost_reply}"

    def check(self, trial: FinishedTrial) -> Miss | None:
        for _, event in trial.iterate_events_of_kind(FaultWitnessed):
            if fnmatchcase(event.fault, self.fault) and fnmatchcase(event.target, self.target):
                return None
        location = "" if self.target == "*" else f" at {self.target}"
        return Miss(f"no {'fault' if self.fault == '*' else self.fault} was witnessed{location}")


@dataclass(frozen=True)
class EveryFaultWitnessed(Assertion):
    """Each fault that was scheduled was witnessed, had nothing to do, or another one ended its call first."""

    example = "every_fault_witnessed"

    def check(self, trial: FinishedTrial) -> Miss | None:
        explained = {(e.injection, e.fault, e.at) for _, e in trial.iterate_events_of_kind(FaultWitnessed)}
        explained |= {
            (e.injection, e.fault, e.at) for _, e in trial.iterate_events_of_kind(FaultHealed) if e.masked_by or e.idle
        }
        failed = find_outage_failures(trial.history, trial.trial)
        for record, event in trial.iterate_events_of_kind(FaultScheduled):
            if (event.injection, event.fault, event.at) not in explained and event.at not in failed:
                location = f"{event.target} {event.request}.{event.attempt}"
                return Miss.from_records(f"{event.fault} was scheduled at {location} and not witnessed", record)
        return None
