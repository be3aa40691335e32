"""The head of a summary: the faults that hurt most, and each way to fail with the command that shows it once more."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from chaoslab.analysis.judge import Outcome
from chaoslab.analysis.run_report import RunReport
from chaoslab.record.rulings import Rulings, State
from chaoslab.reports.contents.matrix import Cell, matrix
from chaoslab.reports.page import alike, count, example, more, share, wrapped

MOST = 3
"""The most places, and ways to fail, that are shown."""
FAILED = (Outcome.HARM, Outcome.FALSE_SUCCESS, Outcome.WRONG, Outcome.FAILED, Outcome.HUNG)
"""The outcomes of a trial that failed, worst first."""


def hurt_most(report: RunReport) -> list[str]:
    """The faults, each at its target, after which the most trials did not end well: by the lower bound of the share, so
    that one bad trial of one does not come before nine of ten."""
    bad = [cell for row in matrix(report).rows.values() for cell in row if cell.bad is not None and cell.bad.count]
    bad.sort(key=lambda cell: -cell.bad.interval.low if cell.bad is not None else 0.0)
    lines = [line for cell in bad[:MOST] for line in wrapped(_cell(cell), indent="  ")]
    return [*(["what hurt most:"] if bad else []), *lines, *more(len(bad), MOST)]


def _cell(cell: Cell) -> str:
    assert cell.bad is not None
    ended = f"{cell.bad.count} of {count(cell.bad.total, 'judged trial')} that met it did not end well"
    return f"{cell.fault} on {cell.target}: {ended} ({share(cell.bad)}), at worst {cell.worst}"


@dataclass(frozen=True)
class _Way:
    """A way to fail. `head` counts its trials, `again` shows the first of them once more; empty if nothing can."""

    head: str
    why: str
    trials: list[str]
    again: str

    def lines(self) -> list[str]:
        again = wrapped(f"again: {self.again}", indent="    ") if self.again else []
        return [*example(self.head, self.why, self.trials), *again]


def failures(report: RunReport) -> list[str]:
    """Each way to fail, worst first, with the command that does its first trial again, or tells its story where the log
    does not hold the program. If a scenario ran it, its rulings tell the ways. No command if the log has no start."""
    rulings = report.rulings
    ways = list(_judged(report) if rulings is None else _ruled(rulings))
    if rulings is not None:
        head = wrapped(f"scenario {rulings.scenario}, which asks for {'; '.join(rulings.asked)}")
    else:
        head = ["failures:"] if ways else []
    return [*head, *(line for way in ways[:MOST] for line in way.lines()), *more(len(ways), MOST)]


def _judged(report: RunReport) -> Iterator[_Way]:
    verb = "show" if report.of_functions else "replay"
    for outcome in FAILED:
        failed = ((one.why, trial) for trial, one in report.verdicts.items() if one.outcome is outcome)
        for why, trials in alike(failed):
            head = f"{len(trials)} × {outcome}" if trials[1:] else f"{trials[0]} {outcome}"
            again = f"chaoslab {verb} {report.name} --trial {trials[0]}" if report.started is not None else ""
            yield _Way(head, why, trials, again)


def _ruled(rulings: Rulings) -> Iterator[_Way]:
    """The ways in which trials have not passed a scenario."""
    poor = {trial: ruling for trial, ruling in rulings.by_trial.items() if ruling.state is not State.PASSED}
    for why, trials in alike((f"{ruling.state}: {'; '.join(ruling.reasons)}", trial) for trial, ruling in poor.items()):
        yield _Way(f"{len(trials)} trials" if trials[1:] else trials[0], why, trials, poor[trials[0]].again)
