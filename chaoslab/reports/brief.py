"""A run on one screen: the verdict, harm and failures, and one table of the faults that were met."""

from shlex import quote

from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.analysis.verdict.table import Outcome
from chaoslab.base.durations import duration
from chaoslab.config import settings
from chaoslab.reports import _summary_faults as summary_faults
from chaoslab.reports import _summary_recovery as summary_recovery
from chaoslab.reports import summary
from chaoslab.reports._summary_failures import failures, hurt_most
from chaoslab.reports.contents.headline import verdict
from chaoslab.reports.page import ListBounds, count, percent, section, wrapped
from chaoslab.reports.trials import counted

MOST = 3
"""The most examples of harm and of warnings."""
ROWS = 4
"""The most faults in the table."""


def render(report: RunReport, *, where: str = "", program: str = "") -> str:
    """The run as plain text of at most 40 lines of 80 columns, but for commands. `where`, `program`: as `failures`
    takes them. All else is in `chaoslab summary`."""
    whole = f"{program or settings.program()} summary {quote(where or report.name)}"
    cut = ListBounds(whole)
    parts = [
        section("verdict", lambda: wrapped(verdict(report)[0] + ".")),
        section("harm", lambda: summary.harmed(report, cut, most=MOST)),
        section("what hurt most", lambda: hurt_most(report, cut)),
        section("failures", lambda: failures(report, cut, where=where, program=program)),
        [
            *section("faults met", lambda: _met(report, cut)),
            *section("failures that nobody injected", lambda: _lone(report, cut)),
        ],
        section("warnings", lambda: summary.warned(report, cut, most=MOST)),
        [
            *section("run", lambda: summary.head(report)),
            *section("trials", lambda: _ended(report)),
            *section("grounds", lambda: wrapped(f"{said}.") if (said := report.grounds.value.said) else []),
            f"all figures: {whole}",
        ],
    ]
    return "\n\n".join("\n".join(lines) for lines in parts if lines) + "\n"


def _ended(report: RunReport) -> list[str]:
    """The outcomes of the trials."""
    outcomes = {Outcome(name): rate.count for name, rate in report.success.value.by_outcome.items()}
    return [*wrapped(f"trials: {counted(outcomes) if outcomes else 'none was started'}"), *summary.right(report)]


def _lone(report: RunReport, cut: ListBounds) -> list[str]:
    return summary_faults.lone(report, cut, most=MOST) if report.knows_faults else []


def _met(report: RunReport, cut: ListBounds) -> list[str]:
    """The faults that were met, worst first: the trials, how many of them ended badly, and the recovery."""
    if not report.knows_faults:
        return []
    impacts, recovery = report.impacts.value, None if report.recovery.unknown else report.recovery.value
    rows = []
    for fault, impact in sorted(impacts.by_fault.items(), key=lambda named: summary_faults.hurt(named[1])):
        by = recovery.by_fault.get(fault) if recovery is not None else None
        bad = "no data" if impact.bad is None else f"{impact.bad.count} of {impact.bad.total}"
        without = "no data" if impact.without is None else percent(impact.without.value)
        mean = "–" if by is None or by.mean_s is None else duration(by.mean_s, 2)
        never = "–" if by is None else str(by.censored)
        rows.append([fault, str(impact.trials), bad, without, never, mean])
    met = f"{len(report.met)} of {count(len(report.trials), 'trial')} met a fault"
    if not rows:
        return [f"{met}."]
    header = ["fault met", "trials", "bad", "without it", "never over", "time to recovery"]
    overall = f"{met}."
    if recovery is None:
        overall = f"{met}; their recovery is unknown: {report.recovery.unknown}."
    elif (every := recovery.overall).n:
        after = "" if every.mean_s is None else f", after {duration(every.mean_s, 2)} in the mean"
        overall = f"{met}; {summary_recovery.counted(every)}{after}."
    return [
        *cut.table(header, [[row] for row in rows[:ROWS]]),
        *cut.more(len(rows) - ROWS),
        "bad: did not end well; without it: the same of the trials that did not meet it.",
        *wrapped(overall),
    ]
