"""The head of a summary: the faults that hurt most, and each way to fail with the command that shows it once more."""

from __future__ import annotations

from chaoslab.analysis.judge import Outcome
from chaoslab.analysis.run_report import RunReport
from chaoslab.record.rulings import State
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


def failures(report: RunReport) -> list[str]:
    """Each way to fail, worst first, with the command that does its first trial again, or tells its story where the log
    does not hold the program. If a scenario ran it, its rulings tell the ways. No command if the log has no start."""
    if report.rulings is not None:
        return _ruled(report)
    verb = "show" if report.of_functions else "replay"
    lines, ways = [], 0
    for outcome in FAILED:
        failed = alike((one.why, trial) for trial, one in report.verdicts.items() if one.outcome is outcome)
        for why, trials in failed[: max(0, MOST - ways)]:
            head = f"{len(trials)} × {outcome}" if trials[1:] else f"{trials[0]} {outcome}"
            lines += example(head, why, trials)
            if report.started is not None:
                lines += wrapped(f"again: chaoslab {verb} {report.name} --trial {trials[0]}", indent="    ")
        ways += len(failed)
    return [*(["failures:"] if lines else []), *lines, *more(ways, MOST)]


def _ruled(report: RunReport) -> list[str]:
    """The scenario, and why trials have not passed it."""
    rulings = report.rulings
    assert rulings is not None
    lines = wrapped(f"scenario {rulings.scenario}, which asks for {'; '.join(rulings.asked)}")
    poor = {trial: ruling for trial, ruling in rulings.by_trial.items() if ruling.state is not State.PASSED}
    found = alike((f"{ruling.state}: {'; '.join(ruling.reasons)}", trial) for trial, ruling in poor.items())
    for why, trials in found[:MOST]:
        lines += example(f"{len(trials)} trials" if trials[1:] else trials[0], why, trials)
        lines += wrapped(f"again: {poor[trials[0]].again}", indent="    ") if poor[trials[0]].again else []
    return lines + more(len(found), MOST)
