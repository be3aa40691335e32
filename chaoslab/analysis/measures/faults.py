"""The delivery of faults (eligible → scheduled → injected → witnessed), failures without a fault, and disturbances by
the lab.

An attempt is eligible for an injection if its dice were rolled for it; if an outer fault masks it, they are not. The
exact binomial interval of the hits, at 99.9 %, checks that the plan was carried out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from chaoslab.analysis.measures import traits
from chaoslab.analysis.measures.intervals import plausible
from chaoslab.core.events import (
    CallDisturbed,
    CallFinished,
    FaultArmed,
    FaultInjected,
    FaultScheduled,
    FaultWitnessed,
    LabDisturbed,
    RunStarted,
)
from chaoslab.record.history import History
from chaoslab.record.lines import Record

PLAUSIBLE = 0.999
Place = tuple[str | None, str, int, int]
"""(trial, target, request, attempt)."""
_OfAttempt = CallFinished | CallDisturbed | FaultScheduled | FaultArmed | FaultInjected | FaultWitnessed


@dataclass(frozen=True)
class FaultCount:
    """One fault of one injection at one target; the faults of an injection share their eligible attempts."""

    injection: str
    fault: str
    target: str
    eligible: int
    scheduled: int
    armed: int
    injected: int
    witnessed: int


@dataclass(frozen=True)
class InjectionCount:
    """One injection over all its faults and targets. `plausible`: None if there is no chance or no attempt to check."""

    injection: str
    eligible: int
    scheduled: int
    injected: int
    witnessed: int
    chance: float | None
    plausible: bool | None


@dataclass(frozen=True)
class Failure:
    """Attempts that failed without a witnessed fault and without a disturbance by the lab, with their number."""

    target: str
    error: str
    count: int


def by_fault(history: History) -> list[FaultCount]:
    """The counts per injection, fault and target, sorted by these names."""
    eligible = _eligible(history)
    counts = [
        Counter((e.injection, e.fault, e.target) for _, e in events)
        for events in (
            history.of(FaultScheduled),
            history.of(FaultArmed),
            history.of(FaultInjected),
            history.of(FaultWitnessed),
        )
    ]
    keys = sorted(set().union(*counts))
    return [FaultCount(*key, eligible[key[0], key[2]], *(count[key] for count in counts)) for key in keys]


def by_injection(history: History) -> list[InjectionCount]:
    """The counts per injection, also for one whose dice never hit."""
    eligible, rows = _eligible(history), by_fault(history)
    chances = _chances(history)
    found = []
    for name in sorted({injection for injection, _ in eligible} | {row.injection for row in rows} | set(chances)):
        mine = [row for row in rows if row.injection == name]
        rolled = sum(count for (injection, _), count in eligible.items() if injection == name)
        scheduled = sum(row.scheduled for row in mine)
        chance = chances.get(name)
        found.append(
            InjectionCount(
                name,
                rolled,
                scheduled,
                sum(row.injected for row in mine),
                sum(row.witnessed for row in mine),
                chance,
                _plausible(scheduled, rolled, chance),
            )
        )
    return found


@dataclass(frozen=True)
class Unmet:
    """A fault that was scheduled but not witnessed, with the reason and the count."""

    fault: str
    why: str
    count: int


def unmet(history: History) -> list[Unmet]:
    """Every fault that was scheduled and not witnessed, most frequent first."""
    told = _Told(history)
    counts = Counter(
        (e.fault, told.why(_place(record, e), e))
        for record, e in history.of(FaultScheduled)
        if (_place(record, e), e.fault, e.injection) not in told.met
    )
    return [Unmet(*key, count) for key, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]


class _Told:
    """The attempts of a log and the faults on them."""

    def __init__(self, history: History) -> None:
        self.calls = {_place(record, e): e for record, e in history.of(CallFinished)}
        self.met = _faults(history.of(FaultWitnessed))
        self.injected, self.armed = _faults(history.of(FaultInjected)), _faults(history.of(FaultArmed))
        self.poisoned = {place for place, _, _ in self.met}
        self.disturbed = _disturbed(history)

    def why(self, place: Place, fault: FaultScheduled) -> str:
        call, this = self.calls.get(place), (place, fault.fault, fault.injection)
        half, injected = traits.corrupts(fault.fault), this in self.injected
        if place in self.disturbed:
            return "the lab itself got in the way"
        if call is None:
            return "its prompt ended first"
        if call.error == "cancelled":
            return "the agent gave its call up"
        if half and not injected and (half == "call" or call.ok):
            return "there was nothing in it to change"
        if place in self.poisoned:
            return "its call met another fault instead"
        if not injected and not call.ok:
            return "its call failed without it"
        return "it was armed and not met, so its prompt is invalid" if this in self.armed else "no reason is known"


def _faults(
    events: Iterable[tuple[Record, FaultWitnessed | FaultInjected | FaultArmed]],
) -> set[tuple[Place, str, str]]:
    return {(_place(record, e), e.fault, e.injection) for record, e in events}


def uninjected(history: History) -> list[Failure]:
    """The failures without an injected fault, most frequent first."""
    met = {_place(record, e) for record, e in history.of(FaultWitnessed)} | _disturbed(history)
    counts = Counter(
        (e.target, e.error or (f"status {e.status}" if e.status else "no reason given"))
        for record, e in history.of(CallFinished)
        if not e.ok and _place(record, e) not in met
    )
    return [Failure(*key, count) for key, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]


@dataclass(frozen=True)
class Disturbance:
    """The lab's disturbances of its own experiment: the number of times that its proxies were lost, the total seconds,
    and the number of attempts that were hit."""

    times: int
    lasted_s: float
    attempts: int


def disturbance(history: History) -> Disturbance | None:
    """The disturbance of a run; None if there was none."""
    outages = [e for _, e in history.of(LabDisturbed)]
    hit = _disturbed(history)
    return Disturbance(len(outages), sum(e.lasted_s for e in outages), len(hit)) if outages or hit else None


def _disturbed(history: History) -> set[Place]:
    return {_place(record, e) for record, e in history.of(CallDisturbed)}


def _place(record: Record, event: _OfAttempt) -> Place:
    return record.trial, event.target, event.request, event.attempt


def _eligible(history: History) -> Counter[tuple[str, str]]:
    return Counter((name, e.target) for _, e in history.of(CallFinished) for name in e.rolled)


def _chances(history: History) -> Mapping[str, float | None]:
    """The chance of each injection in the plan; None if another trigger says when it hits, or if its story decides."""
    run = history.first(RunStarted)
    injections: list[Any] = run.plan.get("injections", []) if run else []
    known = {i["name"]: float(i.get("chance", 1.0)) for i in injections}
    open_ended = {i["name"] for i in injections if i.get("calls") or _other_triggers(i) or _conditional(i)}
    return {name: None if name in open_ended else chance for name, chance in known.items()}


def _other_triggers(injection: Mapping[str, Any]) -> bool:
    """True if it has triggers beside its chance, other than those that only say which calls are eligible."""
    return any(name not in ("tool", "when") for name in injection.get("triggers", {}))


def _conditional(injection: Mapping[str, Any]) -> bool:
    """True if its story decides by itself. A fault that is not installed here counts as one of chance."""
    return any(traits.conditional(choice["fault"]) for choice in injection.get("choices", ()))


def _plausible(hits: int, rolled: int, chance: float | None) -> bool | None:
    if chance is None or not 0 < rolled >= hits:
        return None
    return plausible(hits, rolled, chance, confidence=PLAUSIBLE)
