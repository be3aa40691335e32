"""Fault coverage: how far each planned pair of a call target and a fault came, and the targets without any. A plan that
names a pattern of targets plans its faults for each target that was called and fits."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any

from chaoslab.analysis.measures.faults import FaultStages
from chaoslab.core.events import CallStarted, RunStarted, faults_of
from chaoslab.record.history import History


class Reach(StrEnum):
    """The last stage that a pair reached. NOT_CALLED: no attempt was one that it could hit. NOT_DRAWN: its dice never
    hit. NOT_MET: it was drawn, perhaps armed, and no caller met it."""

    WITNESSED = "witnessed"
    NOT_MET = "not met"
    NOT_DRAWN = "not drawn"
    NOT_CALLED = "never tried"


@dataclass(frozen=True)
class Covered:
    """One fault at one target. `eligible`: the attempts that its injections could hit. `scheduled`, `armed`,
    `witnessed`: how often it got so far; only faults of the wire are armed."""

    target: str
    fault: str
    eligible: int
    scheduled: int
    armed: int
    witnessed: int

    @property
    def reach(self) -> Reach:
        if self.witnessed:
            return Reach.WITNESSED
        if self.scheduled:
            return Reach.NOT_MET
        return Reach.NOT_DRAWN if self.eligible else Reach.NOT_CALLED


@dataclass(frozen=True)
class Coverage:
    """`pairs`: the planned pairs, and those of a log without a plan that were drawn; by target, then fault. `bare`: the
    targets that were called and for which no fault was planned."""

    pairs: tuple[Covered, ...]
    bare: tuple[str, ...]

    @property
    def witnessed(self) -> int:
        """The number of pairs that a caller met."""
        return sum(pair.reach is Reach.WITNESSED for pair in self.pairs)


@dataclass
class Reached:
    """Collects the targets called and the faults delivered in batches."""

    delivered: FaultStages
    called: set[str] = field(default_factory=set)
    started: RunStarted | None = None

    def take(self, history: History) -> None:
        """Adds a batch. The owner of `delivered` gives it the same."""
        self.started = self.started or history.first(RunStarted)
        self.called.update([event.target for _, event in history.of(CallStarted)])

    def result(self) -> Coverage | None:
        rolled = self.delivered.eligible
        eligible: Counter[tuple[str, str]] = Counter()
        for injection in self.started.injections if self.started else ():
            for target, fault in _planned(injection, self.called):
                eligible[target, fault] += rolled[injection["name"], target]
        stages: dict[tuple[str, str], Counter[str]] = {}
        planned = set(eligible)
        for row in self.delivered.by_fault:
            place = row.target, row.fault
            counts = stages.setdefault(place, Counter())
            counts.update(scheduled=row.scheduled, armed=row.armed, witnessed=row.witnessed)
            if place not in planned:
                eligible[place] += row.eligible
        pairs = tuple(_covered(*place, eligible[place], stages.get(place, Counter())) for place in sorted(eligible))
        bare = tuple(sorted(self.called - {pair.target for pair in pairs}))
        return Coverage(pairs, bare) if pairs else None


def _covered(target: str, fault: str, eligible: int, counts: Counter[str]) -> Covered:
    return Covered(target, fault, eligible, counts["scheduled"], counts["armed"], counts["witnessed"])


def _planned(injection: Mapping[str, Any], called: set[str]) -> set[tuple[str, str]]:
    """The pairs of one injection. A name stands for itself, whether called or not."""
    targets: set[str] = set()
    for pattern in injection.get("targets") or ["*"]:
        fits = {target for target in called if fnmatchcase(target, pattern)}
        targets |= fits if set(pattern) & set("*?[") else {pattern}
    return {(target, fault) for target in targets for fault in faults_of(injection)}
