"""The head of a summary: what hurt most, and each way to fail with the command that shows it or does it again."""

from collections.abc import Iterator

from chaoslab.analysis.measures.intervals import Rate
from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.analysis.verdict.table import Outcome
from chaoslab.record.rulings import Rulings, RulingState
from chaoslab.reports.contents._failures import FailureWay, command, ways
from chaoslab.reports.contents._matrix import MatrixCell, matrix
from chaoslab.reports.contents.outcomes import SEVERITY
from chaoslab.reports.page import ListBounds, count, example, percent, share, wrapped

MOST = 3
"""The most places, and ways to fail, that are shown."""
FAILED = (Outcome.HARM, Outcome.FALSE_SUCCESS, Outcome.WRONG, Outcome.FAILED, Outcome.HUNG)
"""The outcomes of a trial that failed, worst first."""


def hurt_most(report: RunReport, cut: ListBounds) -> list[str]:
    """The faults, each at its target, after which the most trials did not end well: by the lower bound of the share, so
    that one bad trial of one does not come before nine of ten, and of equal ones the worst outcome first. Trials that
    met other faults too count only where there are no others, and such places come last. A fault after which trials
    ended as they did without it hurt nothing, and none is blamed for trials that were hit by what nobody injected."""
    impacts = report.impacts.value.by_target
    bad: list[tuple[MatrixCell, Rate, Rate | None]] = []
    for cell in (cell for row in matrix(report).rows.values() for cell in row):
        impact = impacts.get((cell.fault, cell.target))
        blamed, others = (impact.alone or impact.blamed, impact.without) if impact is not None else (None, None)
        if blamed is not None and blamed.count and (others is None or blamed.value > others.value):
            bad.append((cell, blamed, others))
    bad.sort(
        key=lambda found: (
            found[0].mixed,
            -found[1].interval.low,
            SEVERITY.index(found[0].worst) if found[0].worst else 0,
        )
    )
    lines = [line for found in cut.shown(bad, MOST) for line in wrapped(_cell(*found), indent="  ")]
    return [*(["what hurt most:"] if bad else []), *lines, *cut.more(len(bad) - MOST)]


def _cell(cell: MatrixCell, bad: Rate, without: Rate | None) -> str:
    met = "met it among others" if cell.mixed else "met it alone"
    ended = f"{bad.count} of {count(bad.total, 'judged trial')} that {met} did not end well"
    others = f"; without it {percent(without.value)}" if without is not None else ""
    worst = "" if cell.mixed else f", at worst {cell.worst}"
    return f"{cell.fault} on {cell.target}: {ended} ({share(bad)}{others}){worst}"


def failures(report: RunReport, cut: ListBounds, *, where: str = "", program: str = "") -> list[str]:
    """Each way to fail, worst first, with the command that does its first trial again, or tells its story where the log
    does not hold the program. If a scenario ran it, its rulings tell the ways. No command if the log has no start.
    `where`, `program`: the run and chaoslab as the user's shell finds them, the run's name by default."""
    rulings = report.rulings
    told = ways(_judged(report) if rulings is None else _ruled(report, rulings))
    if rulings is not None:
        head = wrapped(f"scenario {rulings.scenario}, which asks for {'; '.join(rulings.asked)}")
    else:
        head = ["failures:"] if told else []
    lines = [
        line
        for way in cut.shown(told, MOST)
        for line in (*example(way.head, way.why, way.trials), *_again(report, way, where or report.name, program))
    ]
    return [*head, *lines, *cut.more(len(told) - MOST)]


def _again(report: RunReport, way: FailureWay, where: str, program: str) -> list[str]:
    """The command in one line, which can be copied, however long it is."""
    rulings, trial = report.rulings, way.trials[0]
    if report.started is None if rulings is None else not rulings.by_trial[trial].again:
        return []
    said = command(report, trial, where=where, program=program)
    does = "see" if rulings is None and report.of_functions else "again"
    return [f"    {does}: {' '.join(said.split())}"]


def _judged(report: RunReport) -> Iterator[tuple[str, str, str]]:
    """The trials that failed, worst first, and of one outcome those that met the fewest faults, which tell most."""
    simplest = sorted(report.verdicts.items(), key=lambda named: report.met.get(named[0], 0))
    for outcome in FAILED:
        yield from ((outcome, one.why, trial) for trial, one in simplest if one.outcome is outcome)


def _ruled(report: RunReport, rulings: Rulings) -> Iterator[tuple[str, str, str]]:
    """The trials that have not passed a scenario, those first that met the fewest faults."""
    for trial, ruling in sorted(rulings.by_trial.items(), key=lambda named: report.met.get(named[0], 0)):
        if ruling.state is not RulingState.PASSED:
            yield ruling.state, "; ".join(ruling.reasons), trial
