"""Which faults were delivered: eligible → scheduled → injected → witnessed; the failures that nobody injected; and what the
lab itself got in the way of.

An attempt is eligible for an injection when its dice were rolled for it; what an outer fault masks never was. Whether the plan
was carried out is checked by the exact binomial interval of the hits, at 99.9 %.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from chaoslab import registry
from chaoslab.events import (
    CallDisturbed,
    CallFinished,
    FaultArmed,
    FaultInjected,
    FaultScheduled,
    FaultWitnessed,
    LabDisturbed,
    RunStarted,
)
from chaoslab.history import History
from chaoslab.measures.intervals import clopper_pearson

PLAUSIBLE = 0.999


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
    """One injection over all its faults and targets. `plausible`: None where there is no chance or no attempt to check."""

    injection: str
    eligible: int
    scheduled: int
    injected: int
    witnessed: int
    chance: float | None
    plausible: bool | None


@dataclass(frozen=True)
class Failure:
    """An attempt that failed although no fault was witnessed on it nor the lab disturbed, and how often."""

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
    """The counts per injection; one whose dice never hit has its line too."""
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


def uninjected(history: History) -> list[Failure]:
    """The failures that nobody injected, most frequent first."""
    met = {(record.trial, e.target, e.request, e.attempt) for record, e in history.of(FaultWitnessed)}
    met |= _disturbed(history)
    counts = Counter(
        (e.target, e.error or (f"status {e.status}" if e.status else "no reason given"))
        for record, e in history.of(CallFinished)
        if not e.ok and (record.trial, e.target, e.request, e.attempt) not in met
    )
    return [Failure(*key, count) for key, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]


@dataclass(frozen=True)
class Disturbance:
    """What the lab did to its own experiment: how often its proxies were lost, for how long in all, and how many attempts that hit."""

    times: int
    lasted_s: float
    attempts: int


def disturbance(history: History) -> Disturbance | None:
    """None for a lab that stood all the time."""
    outages = [e for _, e in history.of(LabDisturbed)]
    hit = _disturbed(history)
    return Disturbance(len(outages), sum(e.lasted_s for e in outages), len(hit)) if outages or hit else None


def _disturbed(history: History) -> set[tuple[str | None, str, int, int]]:
    return {(record.trial, e.target, e.request, e.attempt) for record, e in history.of(CallDisturbed)}


def _eligible(history: History) -> Counter[tuple[str, str]]:
    return Counter((name, e.target) for _, e in history.of(CallFinished) for name in e.rolled)


def _chances(history: History) -> Mapping[str, float | None]:
    """The chance of each injection in the plan; None for one that hits stated calls, or when its story so decides."""
    run = history.first(RunStarted)
    injections: list[Any] = run.plan.get("injections", []) if run else []
    return {i["name"]: None if i.get("calls") or _conditional(i) else float(i.get("chance", 1.0)) for i in injections}


def _conditional(injection: Mapping[str, Any]) -> bool:
    """Whether its story decides by itself; a fault that is not installed here is taken for one of chance."""
    known = [c["fault"] for c in injection.get("choices", ()) if c["fault"] in registry.names("faults")]
    return any(getattr(registry.load("faults", name), "conditional", False) for name in known)


def _plausible(hits: int, rolled: int, chance: float | None) -> bool | None:
    interval = clopper_pearson(hits, rolled, confidence=PLAUSIBLE) if hits <= rolled else None
    return None if interval is None or chance is None else chance in interval
