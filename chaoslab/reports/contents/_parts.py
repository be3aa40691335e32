"""The sections of a report: the figures of a run, each with its sentence, and its tables. A further measure is a
function in `PARTS`, or a table in `_tables.ROWS`."""

import math
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from chaoslab.analysis.measures.incidents import HARMED
from chaoslab.analysis.measures.intervals import Estimate
from chaoslab.analysis.measures.latency import late, latency
from chaoslab.analysis.measures.mttr import Recovery
from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.analysis.verdict.guard import guarded
from chaoslab.base.durations import duration, span
from chaoslab.reports.contents._matrix import CellState, matrix
from chaoslab.reports.contents._table import MANY, SAID, Figure, Section, Table
from chaoslab.reports.contents._tables import ROWS
from chaoslab.reports.page import count, rate_text, seconds, usd
from chaoslab.reports.text import one_line

REAL_TIME = ("", "local", "compose")
"""The worlds whose seconds are real ones; without a name it is another lab's."""
EFFECTS, RECOVERY, TROUBLE = "What the faults led to", "Recovery", "What nobody injected"
LONG_S = 10.0
"""The duration from which on whole seconds say enough."""
FUNCTION = "function"
"""The `via` of a call of a Python function."""
OF_SETTINGS = {
    "wire": "TOXIC_PROB", "model_wire": "MODEL_TOXIC_PROB", "errors": "ERROR_PROB", "stream": "STREAM_PROB",
    "hallucination": "HALLUCINATION_PROB", "context": "CONTEXT_PROB",
}  # fmt: skip
"""The injections that settings make, by name."""


def parts(report: RunReport) -> tuple[Section, ...]:
    """Every section with data. Where a measure failed it gives the reason, and the others stand."""
    made = []
    for title, measures in PARTS.items():
        found: list[Figure | Table] = []
        for name, measure in measures.items():
            found += guarded(partial(_data, measure, report), partial(_unknown, name))
        figures = tuple(each for each in found if isinstance(each, Figure))
        made.append(Section(title, figures, tuple(each for each in found if isinstance(each, Table))))
    return tuple(part for part in made if part.figures or part.tables)


def _data(measure: "Measure", report: RunReport) -> list[Figure | Table]:
    return [each for each in measure(report) if not isinstance(each, Table) or each.rows]


def _unknown(name: str, why: str) -> list[Figure | Table]:
    return [Figure(name, f"{name}: unknown ({one_line(why, SAID)})")]


def _table(name: str, caption: str, report: RunReport, **given: Any) -> Table:
    return Table(name, caption, tuple(ROWS[name](report)), **given)


def _outcomes(report: RunReport) -> Iterator[Table]:
    yield _table("outcomes", "How the trials ended", report)


def _effects(report: RunReport) -> Iterator[Figure | Table]:
    table = _table("impact", "The trials that met each fault, worst first: by harm, then by bad ends", report, names=2)
    if table.rows:
        ruled = "" if report.rulings is None else "failed the scenario, "
        calm = "its twin without faults, or the median of the trials of the same prompt that met none"
        said = (
            f"Did not end well: {ruled}of those that could be judged. Without it: the same of the trials that called "
        )
        yield Figure("trials that met a fault", f"{said}there and did not meet it. More: in the mean, than {calm}.",
                     len(report.met), unit="trials", n=len(report.verdicts))  # fmt: skip
        yield table


def _reliability(report: RunReport) -> Iterator[Figure | Table]:
    found = report.reliability.value
    if found is None:
        return
    ruled = report.rulings is not None
    well = "passed the scenario" if ruled else "were correct, or honest about what could not be done"
    met = "" if found.handled is None else f"; {rate_text(found.handled)} of those that met a fault"
    yield Figure.of("ended well", f"{rate_text(found.available)} of the judged trials {well}{met}.", found.available)
    yield Figure.of("ended well after a fault", "", found.handled)
    nines = f" ({count(found.nines, 'nine')})" if found.nines else ""
    several = found.available.prompts > 1
    of = f"trials of prompts like these {found.available.prompts}" if several else "further trials of this prompt"
    proven = f"So at least {_share(found.proven)}{nines} of all {of} end well, with 95 % confidence. To show "
    proven += f"{_share(1 - 10.0 ** -(found.nines + 1))} takes {found.next_needs:,} "
    proven += f"{'prompts' if several else 'trials'} without a bad one."
    yield Figure.of("proven share", proven, found.proven, unit="share", n=found.available.total)
    yield Figure.of("nines", "", found.nines, n=found.available.total)
    said = ""
    if not found.busy_s:
        said = "Mean time between bad trials: no data, since they took no time."
    elif report.started is not None and report.started.world not in REAL_TIME:
        pass  # its seconds are those of waits, and say nothing of days in operation
    elif found.mtbf_s is not None:
        said = f"One trial after the other, one ended badly every {_long(found.mtbf_s)} in the mean."
    elif found.mtbf_least_s is not None:
        said = f"No trial ended badly in {_long(found.busy_s)} of trials, so one does so less often than every "
        said += f"{_long(found.mtbf_least_s)}, with 95 % confidence."
    yield Figure("time between bad trials", said, found.mtbf_s, found.mtbf_least_s, unit="s", n=found.available.total)
    yield Figure.of("score", f"Score {found.score:.2f}, from 0 to 1.", found.score, n=found.available.total)
    asked = "pass the scenario" if ruled else "be correct or honest"
    caption = f"Error budget of an objective (SLO), the share of trials that should {asked}"
    yield _table("reliability", caption, report, detail=True)
    yield _table("score", "Parts of the score that are known", report, detail=True)


def _recovery(report: RunReport) -> Iterator[Figure | Table]:
    """The number of repaired incidents, the means of repair, and the time that it took."""
    every = report.recovery.value.overall
    if not every.n:
        yield Figure(
            "recovered", "No data: no call that met a fault had anything to recover from.", unit="incidents", n=0
        )
        return
    yield Figure("recovered", f"{recovered(every)}.", every.recovered, unit="incidents", n=every.n)
    if every.mean_s is not None:
        of = every.mean_interval
        took = seconds(Estimate(every.mean_s, of)) if of is not None else duration(every.mean_s, 2)
        mean = f"From the beginning of the call that met the fault to the right answer it took {took} in the mean"
        if every.detected_s is not None and every.since_notice_s is not None:
            noticed = every.recovered - every.late
            mean += (
                f"; the {noticed} by retry or fallback were noticed after {duration(every.detected_s, 2)} and repaired "
            )
            mean += f"{duration(every.since_notice_s, 2)} later"
        yield Figure.of("time to recovery", f"{mean}.", every.mean_s, of, unit="s", n=every.recovered)
        yield Figure.of("time to notice", "", every.detected_s, unit="s")
        yield Figure.of("time to repair", "", every.since_notice_s, unit="s")
    yield Figure.of("median time to recovery", _never(every), every.median, unit="s", n=every.n)
    yield Figure.of("mean time to recovery within the observed time", "", every.restricted_mean, unit="s", n=every.n)
    caption = "Time to recovery (mean = detect + repair, but for late answers), worst first"
    yield _table("mttr", caption, report, names=2)


def recovered(found: Recovery) -> str:
    """The number of incidents per ending."""
    ways = {"by retry": found.retry, "by fallback": found.fallback, "late": found.late}
    by = ", ".join(f"{number} {way}" for way, number in ways.items() if number)
    harmed = f", {found.harmed} with harm ({HARMED})" if found.harmed else ""
    some = f"{found.recovered} of {count(found.n, 'incident')} recovered{f' ({by})' if by else ''}"
    open_ = f", {found.censored} cut short, by the log's end or a dead service" if found.censored else ""
    return f"{some}{harmed}, {found.never} never{open_}"


def _never(found: Recovery) -> str:
    """A sentence on all incidents, of which those that did not recover are never over; empty if all did."""
    if not found.enough:
        return f"{count(found.n, 'fault')}: too few for a median and an interval."
    if not found.recovered:
        return "None recovered, so the median is not reached and there is no mean."
    if found.recovered == found.n:
        return ""
    said = f"{seconds(found.median)} in the median" if found.median else "median not reached"
    if found.restricted_mean and found.horizon_s:
        mean, horizon = seconds(found.restricted_mean), duration(found.horizon_s, 2)
        said += f"; {mean} in the mean, looking no further than {horizon}"
    return f"Of all, where what did not recover is never over (Kaplan–Meier): {said}."


def _quality(report: RunReport) -> Iterator[Figure | Table]:
    if found := report.recovery_quality.value:
        spread = "" if found.interval is None else f" ({found.interval.low:.2f} to {found.interval.high:.2f})"
        said = f"Quality of recovery over {count(found.n, 'trial')} that met a fault: {found.quality:.2f}{spread}, "
        yield Figure.of("quality of recovery", f"{said}{found.grade}.", found.quality, found.interval, n=found.n)
        yield _table("quality", "Quality of recovery, from 0 to 1", report, detail=True)


def _calls(report: RunReport) -> Iterator[Figure]:
    found = report.calls.value
    failed = f"{found.failed} failed" + (f"; {found.given_up} given up by the agent" if found.given_up else "")
    if report.of_functions:
        reached = {attempt.via for attempt in report.attempts.value.drawn if attempt.left}
        to = ["tools"] * (FUNCTION in reached) + ["services"] * bool(reached - {FUNCTION})
        made = f"{found.made} to {' and '.join(to)}" if to else f"{found.made}"
        model = "how many tokens a model takes" if reached - {FUNCTION} else "what it asks of a model"
        asked = "" if report.knows_usage else f", and {model},"
        said = f"{made}; {failed}; {found.retries} were further attempts at a call already made. "
        said += f"How long the agent waits before one{asked} is not known."
    else:
        models = f"{found.to_model} to the model" if report.knows_usage else "those to the model are not known"
        said = f"{found.made - found.to_model} to tools, {models}; {failed}; "
        said += f"{count(found.retries, 'retry', 'retries')}, {count(found.fallbacks, 'fallback')}."
    yield Figure("calls", f"Calls: {said}", found.made, unit="calls")
    yield Figure("failed calls", "", found.failed, unit="calls", n=found.made)
    yield Figure("retries", "", found.retries, unit="calls", n=found.made)


def _amplification(report: RunReport) -> Iterator[Figure | Table]:
    if more := [each for each in report.amplification.value if each.attempts > each.requests]:
        most = max(more, key=lambda each: each.factor)
        layers = ", ".join(f"{n} by {layer}" for layer, n in most.layers.items())
        said = f"Amplification: {most.factor:.2f} attempts for each request to {one_line(most.target, 60)}, "
        said += f"{most.most} at most; again {layers}."
        yield Figure("amplification", said, most.factor, n=most.requests)
        yield _table("amplification", "Attempts for each request that was wanted", report, detail=True)


def _latencies(report: RunReport) -> Iterator[Figure | Table]:
    if found := latency(report.attempts.value.calm):
        said = f"Latency without a fault: median {duration(found.p50_s)}, 99th percentile {duration(found.p99_s)}"
        yield Figure("latency without a fault", f"{said}.", found.p50_s, unit="s", n=found.n)
        yield Figure("99th percentile of it", "", found.p99_s, unit="s", n=found.n)
    yield _table("latency", "Duration of attempts; percentiles by type 7 of Hyndman and Fan", report, detail=True)


def _streams(report: RunReport) -> Iterator[Figure]:
    if found := report.streamed.value:
        first, last = found.first_byte, found.last_byte
        said = (
            f"Streamed: {count(first.n, 'reply', 'replies')}; first byte after {duration(first.p50_s)} in the median, "
        )
        said += (
            f"99th percentile {duration(first.p99_s)}; last byte after {duration(last.p50_s)}, {duration(last.p99_s)}."
        )
        yield Figure("first byte", said, first.p50_s, unit="s", n=first.n)


def _usage(report: RunReport) -> Iterator[Figure]:
    if not report.knows_usage:
        if not report.of_functions:
            yield Figure("cost", "Usage of the model: not known from such a log.", unit="USD")
    elif spent := report.usage.value:
        cost = "price not known" if spent.cost_usd is None else usd(spent.cost_usd)
        if spent.unpriced and spent.cost_usd is not None:
            cost += f" ({spent.unpriced} answers without a price)"
        said = f"Usage: {spent.prompt_tokens} tokens to the model, {spent.completion_tokens} from it, in "
        yield Figure("cost", f"{said}{count(spent.answers, 'answer')}; {cost}.", spent.cost_usd, unit="USD",
                     n=spent.answers)  # fmt: skip
        yield Figure("tokens to the model", "", spent.prompt_tokens, unit="tokens", n=spent.answers)
        yield Figure("tokens from the model", "", spent.completion_tokens, unit="tokens", n=spent.answers)
    else:
        yield Figure("cost", "Usage: the model never answered.", unit="USD", n=0)


def _budgets(report: RunReport) -> Iterator[Figure]:
    """Each limit that was exceeded, by name, with the effect."""
    for passed in report.budgets.value:
        where = f"{count(passed.calls, 'call')} in {count(passed.trials, 'trial')}"
        hard, soft = f"refused {where}", f"was passed at {where}, and only noted"
        said = f"Budget: {passed.limit} {hard if passed.mode == 'hard' else soft}."
        yield Figure(f"{passed.mode} limit passed", said, passed.calls, unit="calls", n=passed.trials)


def _costs(report: RunReport) -> Iterator[Table]:
    caption = "Cost of chaos: what each fault added to its trials; the rows add up to the run"
    yield _table("costs", caption, report, detail=True)


def _delivery(report: RunReport) -> Iterator[Figure | Table]:
    """The faults from the dice to the witness."""
    found = report.delivered.value.by_injection
    if not found:
        yield Figure("scheduled faults", "No fault was planned.", 0, unit="faults")
        return
    odd = [one for one in found if one.plausible is False]
    for one in odd:
        said = f"NOT AS PLANNED: {one_line(one.injection, SAID)} was scheduled {one.scheduled} times in "
        said += f"{count(one.eligible, 'eligible attempt')}, which a chance of {one.chance:g} does not explain."
        yield Figure("not as planned", said, one.scheduled, unit="faults", n=one.eligible)
    said = "The dice hit as often as the chances say." if not odd and any(one.plausible for one in found) else ""
    theirs = [f"{one.injection} is {OF_SETTINGS[one.injection]}'s" for one in found if one.injection in OF_SETTINGS]
    if theirs and not report.of_functions:
        said = f"{said} {', '.join(theirs)}.".lstrip()
    yield Figure("scheduled faults", said, sum(one.scheduled for one in found), unit="faults",
                 n=sum(one.eligible for one in found))  # fmt: skip
    caption = "First what is not as planned; eligible: rolled for; witnessed: a caller met it"
    yield Table("delivery", caption, tuple(ROWS["delivery"](report)), names=2, joint=": ")


def _unmet(report: RunReport) -> Iterator[Table]:
    number, of = sum(each.count for each in report.not_met.value.reasons), report.not_met.value.scheduled
    yield _table("unmet", f"{number} of {count(of, 'scheduled fault')} were not witnessed", report, words=True)


def _coverage(report: RunReport) -> Iterator[Figure]:
    found = [
        cell for cells in matrix(report).rows.values() for cell in cells if cell.state is not CellState.NOT_PLANNED
    ]
    if not found:
        return
    met = sum(cell.state is CellState.MET for cell in found)
    planned = {cell.target for cell in found}
    bare = sorted(one.target for one in report.amplification.value if one.target not in planned)
    told = f"; called, and no fault was planned for it: {', '.join(bare)}" if bare else ""
    said = one_line(f"{met} of {count(len(found), 'planned pair')} of a target and a fault witnessed{told}.", SAID)
    yield Figure("pairs witnessed", said, met, unit="pairs", n=len(found))


def _trouble(report: RunReport) -> Iterator[Figure]:
    yield from (Figure("note", one_line(f"note: {note}", SAID)) for note in report.notes)


def _disturbed(report: RunReport) -> Iterator[Figure]:
    if hit := report.disturbance.value:
        lasted = "" if math.isnan(hit.lasted_s) else f", {duration(hit.lasted_s, 2)} in all"
        # A disturbance is logged with its end: there is none if the lab never came back.
        often = f" {count(hit.times, 'time')}{lasted}" if hit.times else ", and its end is not in the log"
        which = one_line(f" {hit.said}.", SAID) if hit.said else ""
        said = f"The lab was disturbed{often}; {count(hit.attempts, 'attempt')} hit.{' ' if which else ''}{which}"
        yield Figure("attempts hit by a disturbance", said, hit.attempts, unit="calls")


def _failures(report: RunReport) -> Iterator[Figure | Table]:
    """The failures without a fault, most frequent first."""
    number = sum(each.count for each in report.uninjected.value)
    said = "" if number else "Failures that nobody injected: none."
    yield Figure("failures that nobody injected", said, number, unit="calls")
    rows = tuple(ROWS["failures"](report))[:MANY]
    yield Table("failures", f"{count(number, 'failure')} that nobody injected", rows, words=True)


def _delays(report: RunReport) -> Iterator[Figure]:
    for each in () if report.of_functions else late(report.attempts.value):
        said = f"Delays that nobody injected: {each.said}."
        yield Figure("delays that nobody injected", said, each.longest_s, unit="s", n=each.n)


def _warnings(report: RunReport) -> Iterator[Table]:
    yield Table("warnings", "Warnings of the lab", tuple(ROWS["warnings"](report))[:MANY], words=True)


def _long(value_s: float) -> str:
    """A duration of any length as text: 0.13 s, 2 h 5 min."""
    return duration(value_s, 2) if value_s < LONG_S else span(value_s)


def _share(value: float) -> str:
    """A share with as many digits as its nines need."""
    return f"{value:.1%}" if value < 0.99 else f"{value:.4%}"


Measure = Callable[[RunReport], Iterable[Figure | Table]]
PARTS: dict[str, dict[str, Measure]] = {
    "Outcomes": {"trials": _outcomes},
    EFFECTS: {"what the faults led to": _effects},
    "Reliability": {"reliability": _reliability},
    RECOVERY: {"time to recovery": _recovery, "quality of recovery": _quality},
    "Retries and calls": {
        "calls": _calls, "retry amplification": _amplification, "latency": _latencies, "streamed": _streams,
    },
    "Cost": {"usage": _usage, "budget": _budgets, "cost of chaos": _costs},
    "Delivery of the faults": {
        "faults": _delivery, "faults that were not witnessed": _unmet, "fault coverage": _coverage,
    },
    TROUBLE: {
        "notes": _trouble, "disturbances of the lab": _disturbed, "failures that nobody injected": _failures,
        "delays that nobody injected": _delays, "warnings": _warnings,
    },
}  # fmt: skip
"""Each section by its title, in the order of a report, with its measures by their names."""
