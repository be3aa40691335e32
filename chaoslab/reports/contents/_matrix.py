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
from chaoslab.core.events import collect_fault_names
from chaoslab.reports.contents.outcomes import SEVERITY, outcome_word
from chaoslab.reports.page import format_count, format_interval, format_percent, format_rate_in_percent
from chaoslab.reports.text import make_one_line


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
LEGEND = (
    "A cell: the trials that met the fault there and no other and did not end well, of the judged ones, with the 95 % "
    "interval over prompts, and the worst outcome; “with others”: trials that met other faults too, so that the cell "
    "does not say which is the cause."
)
"""The meaning of a cell's lines."""


@dataclass(frozen=True)
class MatrixCell:
    """One fault at one target. `trials`, `attempts`: those that met it. `bad`: the trials that did not end well, of the
    judged ones that met it and no other fault; if there is none, of all that met it, and `mixed` is true. None if none
    could be judged. `worst`: the worst outcome of the same trials."""

    fault: str
    target: str
    state: CellState
    scheduled: int = 0
    trials: int = 0
    attempts: int = 0
    worst: Outcome | None = None
    bad: Rate | None = None
    mixed: bool = False

    @property
    def is_failed_by_scenario(self) -> bool:
        """True if each outcome is a good one, and a scenario let a trial fail all the same."""
        return bool(self.bad and self.bad.count) and str(self.worst) in ENDED_WELL

    @property
    def text_lines(self) -> tuple[str, ...]:
        """The cell in words, as in ("1/4", "1%–89%", "wrong", "2 with others")."""
        if self.state is not CellState.MET:
            return (str(self.state), f"{self.scheduled} scheduled") if self.scheduled else (str(self.state),)
        figures, others = ("0 judged", f"of {self.trials}"), 0
        if self.bad is not None:
            figures = f"{self.bad.count}/{self.bad.total}", format_interval(self.bad.interval)
            others = 0 if self.mixed else self.trials - self.bad.total
        worst = "failed it" if self.is_failed_by_scenario else outcome_word(self.worst) if self.worst else "no outcome"
        if self.mixed:
            return *figures, worst, "with others"
        return (*figures, worst, f"{others} with others") if others else (*figures, worst)


@dataclass(frozen=True)
class Matrix:
    """A row of cells per fault, first those that were met most often; a column per target, first those where a fault
    was met."""

    targets: tuple[str, ...]
    rows: Mapping[str, tuple[MatrixCell, ...]]

    @property
    def scheduled_rows(self) -> dict[str, tuple[MatrixCell, ...]]:
        """The rows of faults that were scheduled or met. A plan at a level of chaos has dozens of others."""
        return {fault: cells for fault, cells in self.rows.items() if any(cell.state in SCHEDULED for cell in cells)}

    @property
    def never_scheduled_faults(self) -> list[str]:
        """The faults that were planned and never scheduled."""
        return [fault for fault in self.rows if fault not in self.scheduled_rows]


def build_matrix(report: RunReport) -> Matrix:
    """The matrix of a run. Without a plan and without faults it has no rows."""
    scheduled: Counter[tuple[str, str]] = Counter()
    for fault_count in () if report.delivered.unknown else report.delivered.value.by_fault:
        scheduled[fault_count.fault, fault_count.target] += fault_count.scheduled
    impacts = report.impacts.value.by_target
    called = (
        set() if report.amplification.unknown else {fault_count.target for fault_count in report.amplification.value}
    )
    planned = _list_planned_pairs(report.started.injections if report.started else (), called)
    pairs = {*planned, *scheduled, *impacts}
    met_targets = {target for _, target in impacts}
    targets = tuple(sorted({target for _, target in pairs}, key=lambda target: (target not in met_targets, target)))

    def build_cell(fault: str, target: str) -> MatrixCell:
        pair = (fault, target)
        if impact := impacts.get(pair):
            worst = next((outcome for outcome in SEVERITY if impact.worst_of.get(str(outcome))), None)
            counts = scheduled[pair], impact.trials, impact.attempts
            # Only if no trial met this fault alone do those stand here that met others too.
            mixed = impact.alone is None and impact.bad is not None
            bad = impact.alone or impact.bad
            return MatrixCell(*pair, CellState.MET, *counts, worst=worst, bad=bad, mixed=mixed)
        if scheduled[pair]:
            return MatrixCell(*pair, CellState.UNMET, scheduled[pair])
        return MatrixCell(*pair, CellState.NOT_RUN if pair in planned else CellState.NOT_PLANNED)

    rows = {
        fault: tuple(build_cell(fault, target) for target in targets) for fault in sorted({name for name, _ in pairs})
    }
    ranked = sorted(rows, key=lambda fault: -sum(fault_count.attempts for fault_count in rows[fault]))
    return Matrix(targets, {fault: rows[fault] for fault in ranked})


def _list_planned_pairs(injections: Sequence[Mapping[str, Any]], called: set[str]) -> set[tuple[str, str]]:
    """The planned places. A name stands for itself, whether called or not, a pattern for each target that was called
    and fits."""
    places: set[tuple[str, str]] = set()
    for injection in injections:
        for pattern in injection.get("targets") or ["*"]:
            fits = {target for target in called if fnmatchcase(target, pattern)}
            targets = fits if set(pattern) & set("*?[") else {pattern}
            places |= {(fault, target) for fault in collect_fault_names(injection) for target in targets}
    return places


def rank_harmful_faults(report: RunReport, fault_matrix: Matrix) -> tuple[str, ...]:
    """The faults, each at its target, after which the most trials did not end well: by the lower bound of the share, so
    that one bad trial of one does not come before nine of ten, and of equal ones the worst outcome first. Trials that
    met other faults too count only where there are no others, and such places come last. A fault after which trials
    ended as they did without it hurt nothing, and none is blamed for trials that were hit by what nobody injected."""
    bad: list[tuple[MatrixCell, Rate, Rate | None]] = []
    for (fault, target), impact in report.impacts.value.by_target.items():
        blamed, rate_without = impact.alone or impact.blamed, impact.without
        # A fault after which as many trials end badly as without it is not to blame.
        if blamed is not None and blamed.count and (rate_without is None or blamed.value > rate_without.value):
            cell = fault_matrix.rows[fault][fault_matrix.targets.index(target)]
            bad.append((cell, blamed, rate_without))
    bad.sort(
        key=lambda entry: (
            entry[0].mixed,
            -entry[1].interval.low,
            SEVERITY.index(entry[0].worst) if entry[0].worst else 0,
        )
    )
    return tuple(_describe_bad_ends(*ranked_entry) for ranked_entry in bad)


def _describe_bad_ends(cell: MatrixCell, bad: Rate, without: Rate | None) -> str:
    exposure = "met it among others" if cell.mixed else "met it alone"
    ended = f"{bad.count} of {format_count(bad.total, 'judged trial')} that {exposure} did not end well"
    comparison = f"; without it {format_percent(without.value)}" if without is not None else ""
    worst = f", at worst {outcome_word(cell.worst)}" if cell.worst and not cell.mixed else ""
    return (
        f"{make_one_line(cell.fault, NAME)} on {make_one_line(cell.target, NAME)}: {ended} "
        f"({format_rate_in_percent(bad)}{comparison}){worst}"
    )
