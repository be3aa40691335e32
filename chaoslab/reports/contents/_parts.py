"""The measures of a run as titled sentences and tables, in the order of a report. A further measure is a function in
`PARTS`."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from chaoslab.analysis.measures.reliability import WEIGHTS
from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.analysis.verdict.guard import guarded
from chaoslab.analysis.verdict.table import Outcome
from chaoslab.base.durations import duration, span
from chaoslab.reports.contents import _of_calls as of_calls
from chaoslab.reports.contents import _of_faults as of_faults
from chaoslab.reports.contents._table import MANY, SAID, Section, Table
from chaoslab.reports.contents.outcomes import word
from chaoslab.reports.page import count, percent, percents, rate_text
from chaoslab.reports.text import one_line

REAL_TIME = ("", "local", "compose")
"""The worlds whose seconds are real ones; without a name it is another lab's."""
EFFECTS, RECOVERY, TROUBLE = "What the faults led to", "Recovery", "What nobody injected"
LONG_S = 10.0
"""The duration from which on whole seconds say enough."""


def parts(report: RunReport) -> tuple[Section, ...]:
    """Every section with data. Where a measure failed it gives the reason, and the others stand."""
    made = []
    for title, measures in PARTS.items():
        said: list[str | Table] = []
        for name, measure in measures.items():
            said += guarded(partial(list[str | Table], measure(report)), partial(_unknown, name))
        tables = tuple(each for each in said if isinstance(each, Table))
        made.append(Section(title, tuple(each for each in said if isinstance(each, str)), tables))
    return tuple(part for part in made if part.lines or part.tables)


def _unknown(name: str, why: str) -> list[str | Table]:
    return [f"{name}: unknown ({one_line(why, SAID)})"]


def _outcomes(report: RunReport) -> Iterator[Table]:
    found = report.success.value.by_outcome
    rows = [
        [word(name), str(rate.count), percent(rate.value), percents(rate.interval)]
        for name in Outcome
        if (rate := found.get(name))
    ]
    if rows:
        yield Table("How the trials ended", ["outcome", "trials", "share", "95 % interval"], rows)


def _noted(report: RunReport) -> Iterator[str]:
    yield from (one_line(f"note: {note}", SAID) for note in report.notes)


def _disturbed(report: RunReport) -> Iterator[str]:
    if hit := report.disturbance.value:
        lasted = "" if math.isnan(hit.lasted_s) else f", {duration(hit.lasted_s, 2)} in all"
        # A disturbance is logged with its end: there is none if the lab never came back.
        often = f" {count(hit.times, 'time')}{lasted}" if hit.times else ", and its end is not in the log"
        yield f"The lab was disturbed{often}; {count(hit.attempts, 'attempt')} hit."
        yield from [one_line(f"{hit.said}.", SAID)] if hit.said else []


def _warned(report: RunReport) -> Iterator[Table]:
    warned = Counter((who, one_line(message, SAID)) for who, message in report.warnings.value)
    rows = [[one_line(who, SAID), str(number), text] for (who, text), number in warned.most_common(MANY)]
    if rows:
        yield Table("Warnings of the lab", ["writer", "number", "warning"], rows, words=True)


def _reliability(report: RunReport) -> Iterator[str | Table]:
    found = report.reliability.value
    if found is None:
        return
    ruled = report.rulings is not None
    well = "passed the scenario" if ruled else "were correct, or honest about what could not be done"
    met = "" if found.handled is None else f"; {rate_text(found.handled)} of those that met a fault"
    yield f"{rate_text(found.available)} of the judged trials {well}{met}."
    nines = f" ({count(found.nines, 'nine')})" if found.nines else ""
    yield (
        f"So at least {_share(found.proven)}{nines} of all such trials end well, with 95 % confidence. To show "
        f"{_share(1 - 10.0 ** -(found.nines + 1))} takes {found.next_needs:,} trials without a bad one."
    )
    if not found.busy_s:
        yield "Mean time between bad trials: no data, since they took no time."
    elif report.started is not None and report.started.world not in REAL_TIME:
        pass  # its seconds are those of waits, and say nothing of days in operation
    elif found.mtbf_s is not None:
        yield f"One trial after the other, one ended badly every {_long(found.mtbf_s)} in the mean."
    elif found.mtbf_least_s is not None:
        yield (
            f"No trial ended badly in {_long(found.busy_s)} of trials, so one does so less often than every "
            f"{_long(found.mtbf_least_s)}, with 95 % confidence."
        )
    yield f"Score {found.score:.2f}, from 0 to 1."
    rows = [[name, f"{WEIGHTS[name]:.2f}", f"{value:.2f}"] for name, value in found.parts.items()]
    budgets = [
        [f"{b.objective:.1%}", _few(b.allowed), str(b.failed), percent(b.left), f"{b.burn:.1f}"] for b in found.budgets
    ]
    header = ["objective", "may end badly", "did", "budget left", "burn rate"]
    asked = "pass the scenario" if ruled else "be correct or honest"
    caption = f"Error budget of an objective (SLO), the share of trials that should {asked}"
    yield Table(caption, header, budgets, detail=True)
    yield Table("Parts of the score that are known", ["part", "weight", "value"], rows, detail=True)


def _few(value: float) -> str:
    """A number of trials, with a digit above 0 also where it is a small part of one."""
    return f"{value:.1f}" if value >= 0.1 or not value else f"{value:.1g}"


def _long(value_s: float) -> str:
    """A duration of any length as text: 0.13 s, 2 h 5 min."""
    return duration(value_s, 2) if value_s < LONG_S else span(value_s)


def _share(value: float) -> str:
    """A share with as many digits as its nines need."""
    return f"{value:.1%}" if value < 0.99 else f"{value:.4%}"


Measure = Callable[[RunReport], Iterable[str | Table]]
PARTS: dict[str, dict[str, Measure]] = {
    "Outcomes": {"trials": _outcomes},
    EFFECTS: {"what the faults led to": of_faults.effects},
    "Reliability": {"reliability": _reliability},
    RECOVERY: {"time to recovery": of_faults.recovery, "quality of recovery": of_faults.quality},
    "Retries and calls": {
        "calls": of_calls.calls, "retry amplification": of_calls.amplification, "latency": of_calls.latencies,
        "streamed": of_calls.streams,
    },
    "Cost": {
        "usage": of_calls.usage, "budget": of_calls.budgets, "cost of chaos": of_calls.added,
    },
    "Delivery of the faults": {
        "faults": of_faults.delivery, "faults that were not witnessed": of_faults.not_met,
    },
    "Fault coverage": {"fault coverage": of_faults.coverage},
    TROUBLE: {
        "notes": _noted, "disturbances of the lab": _disturbed, "failures that nobody injected": of_faults.alone,
        "delays that nobody injected": of_faults.delays, "warnings": _warned,
    },
}  # fmt: skip
"""Each section by its title, in the order of a report, with its measures by their names."""
