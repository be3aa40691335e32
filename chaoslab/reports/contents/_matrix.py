"""The matrix of a run: the outcomes of the trials that met each fault at each target."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any

from chaoslab.analysis.measures.intervals import Rate
from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.analysis.verdict.table import ENDED_WELL, Outcome
from chaoslab.core.events import faults_of
from chaoslab.reports.contents.outcomes import SEVERITY, word
from chaoslab.reports.page import count, percent, share
from chaoslab.reports.text import one_line


class CellState(StrEnum):
    """The state of a cell. MET: the fault was witnessed there. UNMET: it was scheduled and never witnessed. NOT_RUN: it
    was planned and never scheduled. NOT_PLANNED: the plan does not have it there."""

    MET = "witnessed"
    UNMET = "not witnessed"
    NOT_RUN = "not run"
    NOT_PLANNED = "not planned"


NAME = 100
"""The most characters of the name of a fault or a target in a sentence."""
SCHEDULED = (CellState.MET, CellState.UNMET)


@dataclass(frozen=True)
class MatrixCell:
    """One fault at one target. `trials`, `attempts`: those that met it. `bad`: the trials that did not end well, of the
    judged ones that met it and no other fault; if there is none, of all that met it, and `mixed` is true. None if none
    could be judged. `worst`: the worst outcome of the same trials. `at_worst`: of all that met it."""

    fault: str
    target: str
    state: CellState
    scheduled: int = 0
    trials: int = 0
    attempts: int = 0
    worst: Outcome | None = None
    bad: Rate | None = None
    mixed: bool = False
    at_worst: Outcome | None = None

    @property
    def others(self) -> int:
        """The trials that met other faults too and are not among the figures."""
        return 0 if self.mixed or self.bad is None else self.trials - self.bad.total

    @property
    def refused(self) -> bool:
        """True if each outcome is a good one, and a scenario let a trial fail all the same."""
        return bool(self.bad and self.bad.count) and str(self.worst) in ENDED_WELL


@dataclass(frozen=True)
class Matrix:
    """A row of cells per fault, first those that were met most often; a column per target, first those where a fault
    was met."""

    targets: tuple[str, ...]
    rows: Mapping[str, tuple[MatrixCell, ...]]

    @property
    def scheduled(self) -> dict[str, tuple[MatrixCell, ...]]:
        """The rows of faults that were scheduled or met. A plan at a level of chaos has dozens of others."""
        return {fault: cells for fault, cells in self.rows.items() if any(cell.state in SCHEDULED for cell in cells)}

    @property
    def never(self) -> list[str]:
        """The faults that were planned and never scheduled."""
        return [fault for fault in self.rows if fault not in self.scheduled]


def matrix(report: RunReport) -> Matrix:
    """The matrix of a run. Without a plan and without faults it has no rows."""
    scheduled: Counter[tuple[str, str]] = Counter()
    for one in () if report.delivered.unknown else report.delivered.value.by_fault:
        scheduled[one.fault, one.target] += one.scheduled
    impacts = report.impacts.value.by_target
    called = set() if report.amplification.unknown else {one.target for one in report.amplification.value}
    planned = _planned(report.started.injections if report.started else (), called)
    places = {*planned, *scheduled, *impacts}
    met = {target for _, target in impacts}
    targets = tuple(sorted({target for _, target in places}, key=lambda target: (target not in met, target)))

    def cell(fault: str, target: str) -> MatrixCell:
        place = (fault, target)
        if found := impacts.get(place):
            worst, at_worst = (
                next((outcome for outcome in SEVERITY if outcomes.get(str(outcome))), None)
                for outcomes in (found.worst_of, found.outcomes)
            )
            counts = scheduled[place], found.trials, found.attempts
            mixed = found.alone is None and found.bad is not None
            bad = found.alone or found.bad
            return MatrixCell(*place, CellState.MET, *counts, worst=worst, bad=bad, mixed=mixed, at_worst=at_worst)
        if scheduled[place]:
            return MatrixCell(*place, CellState.UNMET, scheduled[place])
        return MatrixCell(*place, CellState.NOT_RUN if place in planned else CellState.NOT_PLANNED)

    rows = {fault: tuple(cell(fault, target) for target in targets) for fault in sorted({name for name, _ in places})}
    most = sorted(rows, key=lambda fault: -sum(one.attempts for one in rows[fault]))
    return Matrix(targets, {fault: rows[fault] for fault in most})


def _planned(injections: Sequence[Mapping[str, Any]], called: set[str]) -> set[tuple[str, str]]:
    """The planned places. A name stands for itself, whether called or not, a pattern for each target that was called
    and fits."""
    places: set[tuple[str, str]] = set()
    for injection in injections:
        for pattern in injection.get("targets") or ["*"]:
            fits = {target for target in called if fnmatchcase(target, pattern)}
            targets = fits if set(pattern) & set("*?[") else {pattern}
            places |= {(fault, target) for fault in faults_of(injection) for target in targets}
    return places


def hurt_most(report: RunReport, found: Matrix) -> tuple[str, ...]:
    """The faults, each at its target, after which the most trials did not end well: by the lower bound of the share, so
    that one bad trial of one does not come before nine of ten, and of equal ones the worst outcome first. Trials that
    met other faults too count only where there are no others, and such places come last. A fault after which trials
    ended as they did without it hurt nothing, and none is blamed for trials that were hit by what nobody injected."""
    bad: list[tuple[MatrixCell, Rate, Rate | None]] = []
    for (fault, target), impact in report.impacts.value.by_target.items():
        blamed, others = impact.alone or impact.blamed, impact.without
        if blamed is not None and blamed.count and (others is None or blamed.value > others.value):
            cell = found.rows[fault][found.targets.index(target)]
            bad.append((cell, blamed, others))
    bad.sort(key=lambda of: (of[0].mixed, -of[1].interval.low, SEVERITY.index(of[0].worst) if of[0].worst else 0))
    return tuple(_in_words(*each) for each in bad)


def _in_words(cell: MatrixCell, bad: Rate, without: Rate | None) -> str:
    met = "met it among others" if cell.mixed else "met it alone"
    ended = f"{bad.count} of {count(bad.total, 'judged trial')} that {met} did not end well"
    others = f"; without it {percent(without.value)}" if without is not None else ""
    worst = f", at worst {word(cell.worst)}" if cell.worst and not cell.mixed else ""
    return f"{one_line(cell.fault, NAME)} on {one_line(cell.target, NAME)}: {ended} ({share(bad)}{others}){worst}"
