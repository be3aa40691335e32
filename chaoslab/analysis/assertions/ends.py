"""Assertions on a trial's end, its time, and the faults it met."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import ClassVar

from chaoslab.analysis.assertions import Assertion, Bounds, FinishedTrial, Miss
from chaoslab.analysis.measures.incidents import HARMED, Ending, how_bad, incidents
from chaoslab.analysis.verdict import table
from chaoslab.analysis.verdict._spoilt import failed_in_outages
from chaoslab.base.registry import did_you_mean
from chaoslab.core.events import FaultHealed, FaultScheduled, FaultWitnessed


@dataclass(frozen=True)
class Outcome(Assertion):
    """The outcome is one of these."""

    outcomes: str | Sequence[str]
    example = "{outcomes: [correct, degraded]}"

    def check(self, seen: FinishedTrial) -> Miss | None:
        wanted = [self.outcomes] if isinstance(self.outcomes, str) else list(self.outcomes)
        if str(seen.verdict.outcome) in wanted:
            return None
        return Miss(f"the outcome is {seen.verdict.outcome} instead of {' or '.join(wanted)}: {seen.verdict.why}")

    def __post_init__(self) -> None:
        super().__post_init__()
        known = [str(each) for each in table.Outcome]
        for each in [self.outcomes] if isinstance(self.outcomes, str) else self.outcomes:
            if each not in known:
                raise ValueError(f"no outcome is called '{each!s:.60}': {did_you_mean(str(each), known)}")


@dataclass(frozen=True)
class ErrorType(Assertion):
    """The trial ends with this kind of error: none, agent, budget, hung, or that of the lab's agent."""

    kind: str
    example = "{kind: none}"

    def check(self, seen: FinishedTrial) -> Miss | None:
        if seen.end is None:
            return Miss("the trial did not end")
        record, end = seen.end
        if end.error_type == self.kind:
            return None
        return Miss.at(f"it ended with {end.error_type} instead of {self.kind}", record)


@dataclass(frozen=True)
class CompletesWithin(Assertion):
    """The trial takes at most `seconds`, in its world's time."""

    seconds: float
    bounds: ClassVar[Bounds] = {"seconds": (0, 1e15)}
    example = "{seconds: 60}"

    def check(self, seen: FinishedTrial) -> Miss | None:
        if seen.end is None:
            return Miss("the trial did not end")
        record, end = seen.end
        if end.duration_s <= self.seconds:
            return None
        return Miss.at(f"it took {end.duration_s:g} s, at most {self.seconds:g} s were allowed", record)


@dataclass(frozen=True)
class RecoveredWithin(Assertion):
    """Each request that met a fault gets a right result at most `seconds` after that attempt began, without a repeated
    effect. A trial without a fault that anything could recover from is a miss."""

    seconds: float
    tool: str = "*"
    bounds: ClassVar[Bounds] = {"seconds": (0, 1e15)}
    example = "{seconds: 10, tool: search}"

    def check(self, seen: FinishedTrial) -> Miss | None:
        found = [each for each in incidents(seen.history) if fnmatchcase(each.target, self.tool)]
        if not found:
            return Miss("no fault was met that anything could recover from")
        for each in sorted(found, key=how_bad, reverse=True):
            request = f"request {each.request} to {each.target}"
            if each.ending is Ending.HARM:
                return Miss(f"{request} recovered from {each.fault} with harm: {HARMED}")
            if not each.recovered:
                return Miss(f"{request} never recovered from {each.fault}")
            if each.duration_s > self.seconds:
                took = f"{request} took {each.duration_s:g} s to recover from {each.fault}"
                return Miss(f"{took}, at most {self.seconds:g} s were allowed")
        return None


@dataclass(frozen=True)
class AtLeastOneFault(Assertion):
    """At least one `fault` (a name or a pattern) is witnessed at `target` (a name or a pattern)."""

    fault: str = "*"
    target: str = "*"
    example = "{fault: lost_reply}"

    def check(self, seen: FinishedTrial) -> Miss | None:
        for _, event in seen.of(FaultWitnessed):
            if fnmatchcase(event.fault, self.fault) and fnmatchcase(event.target, self.target):
                return None
        where = "" if self.target == "*" else f" at {self.target}"
        return Miss(f"no {'fault' if self.fault == '*' else self.fault} was witnessed{where}")


@dataclass(frozen=True)
class EveryFaultWitnessed(Assertion):
    """Each fault that was scheduled was witnessed, had nothing to do, or another one ended its call first."""

    example = "every_fault_witnessed"

    def check(self, seen: FinishedTrial) -> Miss | None:
        met = {(e.injection, e.fault, e.at) for _, e in seen.of(FaultWitnessed)}
        met |= {(e.injection, e.fault, e.at) for _, e in seen.of(FaultHealed) if e.masked_by or e.idle}
        failed = failed_in_outages(seen.history, seen.trial)
        for record, event in seen.of(FaultScheduled):
            if (event.injection, event.fault, event.at) not in met and event.at not in failed:
                where = f"{event.target} {event.request}.{event.attempt}"
                return Miss.at(f"{event.fault} was scheduled at {where} and not witnessed", record)
        return None
