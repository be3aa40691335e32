"""The head of a summary: what hurt most, and each way to fail with the command that shows it or does it again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from shlex import quote

from chaoslab.analysis.judge import Outcome
from chaoslab.analysis.measures.intervals import Rate
from chaoslab.analysis.run_report import RunReport
from chaoslab.record.rulings import Rulings, State
from chaoslab.reports.contents.matrix import Cell, matrix
from chaoslab.reports.contents.outcomes import SEVERITY
from chaoslab.reports.page import Cut, alike, count, example, percent, share, wrapped

MOST = 3
"""The most places, and ways to fail, that are shown."""
FAILED = (Outcome.HARM, Outcome.FALSE_SUCCESS, Outcome.WRONG, Outcome.FAILED, Outcome.HUNG)
"""The outcomes of a trial that failed, worst first."""


def hurt_most(report: RunReport, cut: Cut) -> list[str]:
    """The faults, each at its target, after which the most trials did not end well: by the lower bound of the share, so
    that one bad trial of one does not come before nine of ten, and of equal ones the worst outcome first. A fault after
    which trials ended as they did without it hurt nothing."""
    without = {place: impact.without for place, impact in report.impacts.value.by_target.items()}
    bad: list[tuple[Cell, Rate, Rate | None]] = []
    for cell in (cell for row in matrix(report).rows.values() for cell in row):
        others = without.get((cell.fault, cell.target))
        if cell.bad is not None and cell.bad.count and (others is None or cell.bad.value > others.value):
            bad.append((cell, cell.bad, others))
    bad.sort(key=lambda found: (-found[1].interval.low, SEVERITY.index(found[0].worst) if found[0].worst else 0))
    lines = [line for found in cut.shown(bad, MOST) for line in wrapped(_cell(*found), indent="  ")]
    return [*(["what hurt most:"] if bad else []), *lines, *cut.more(len(bad) - MOST)]


def _cell(cell: Cell, bad: Rate, without: Rate | None) -> str:
    ended = f"{bad.count} of {count(bad.total, 'judged trial')} that met it did not end well"
    others = f"; without it {percent(without.value)}" if without is not None else ""
    return f"{cell.fault} on {cell.target}: {ended} ({share(bad)}{others}), at worst {cell.worst}"


@dataclass(frozen=True)
class _Way:
    """A way to fail. `head` counts its trials, `command` looks at the first of them; empty if nothing can."""

    head: str
    why: str
    trials: list[str]
    command: str

    def lines(self) -> list[str]:
        """In at most 80 columns, but for the command, which can be copied as one line."""
        command = " ".join(self.command.split())
        return [*example(self.head, self.why, self.trials), *([f"    {command}"] if command else [])]


def failures(report: RunReport, cut: Cut, *, where: str = "", program: str = "chaoslab") -> list[str]:
    """Each way to fail, worst first, with the command that does its first trial again, or tells its story where the log
    does not hold the program. If a scenario ran it, its rulings tell the ways. No command if the log has no start.
    `where`, `program`: the run and chaoslab as the user's shell finds them, the run's name by default."""
    rulings = report.rulings
    ways = list(_judged(report, where or report.name, program) if rulings is None else _ruled(rulings))
    if rulings is not None:
        head = wrapped(f"scenario {rulings.scenario}, which asks for {'; '.join(rulings.asked)}")
    else:
        head = ["failures:"] if ways else []
    return [*head, *(line for way in cut.shown(ways, MOST) for line in way.lines()), *cut.more(len(ways) - MOST)]


def _judged(report: RunReport, where: str, program: str) -> Iterator[_Way]:
    head = f"see: {program} show" if report.of_functions else f"again: {program} replay"
    for outcome in FAILED:
        failed = ((one.why, trial) for trial, one in report.verdicts.items() if one.outcome is outcome)
        for why, trials in alike(failed):
            many = f"{len(trials)} × {outcome}" if trials[1:] else f"{trials[0]} {outcome}"
            command = f"{head} {quote(where)} --trial {trials[0]}" if report.started is not None else ""
            yield _Way(many, why, trials, command)


def _ruled(rulings: Rulings) -> Iterator[_Way]:
    """The ways in which trials have not passed a scenario."""
    poor = {trial: ruling for trial, ruling in rulings.by_trial.items() if ruling.state is not State.PASSED}
    for why, trials in alike((f"{ruling.state}: {'; '.join(ruling.reasons)}", trial) for trial, ruling in poor.items()):
        again = poor[trials[0]].again
        many = f"{len(trials)} trials" if trials[1:] else trials[0]
        yield _Way(many, why, trials, f"again: {again}" if again else "")
