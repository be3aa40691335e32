"""The sections of a report: the figures of a run, each with its sentence, and its tables. A further measure is a
function in `PARTS`, or a table in `_tables.ROWS`."""

import math
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from chaoslab.analysis.measures.incidents import HARMED
from chaoslab.analysis.measures.intervals import Estimate
from chaoslab.analysis.measures.latency import find_late_attempts, summarize_latency
from chaoslab.analysis.measures.mttr import Recovery
from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.analysis.verdict.guard import run_guarded
from chaoslab.base.durations import duration, span
from chaoslab.reports.contents._matrix import CellState, build_matrix
from chaoslab.reports.contents._table import MANY, SAID, Figure, Section, Table
from chaoslab.reports.contents._tables import ROWS
from chaoslab.reports.page import count, format_seconds, format_usd, rate_text
from chaoslab.reports.text import make_one_line

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


def build_sections(report: RunReport) -> tuple[Section, ...]:
    """Every section with data. Where a measure failed it gives the reason, and the others stand."""
    sections = []
    for title, measures in PARTS.items():
        items: list[Figure | Table] = []
        for name, measure in measures.items():
            items += run_guarded(partial(_read_measure, measure, report), partial(_report_unknown, name))
        figures = tuple(item for item in items if isinstance(item, Figure))
        sections.append(Section(title, figures, tuple(item for item in items if isinstance(item, Table))))
    return tuple(part for part in sections if part.figures or part.tables)


def _read_measure(measure: "Measure", report: RunReport) -> list[Figure | Table]:
    return [item for item in measure(report) if not isinstance(item, Table) or item.rows]


def _report_unknown(name: str, reason: str) -> list[Figure | Table]:
    return [Figure(name, f"{name}: unknown ({make_one_line(reason, SAID)})")]


def _build_table(name: str, caption: str, report: RunReport, **table_options: Any) -> Table:
    return Table(name, caption, tuple(ROWS[name](report)), **table_options)


def _outcome_tables(report: RunReport) -> Iterator[Table]:
    yield _build_table("outcomes", "How the trials ended", report)


def _effect_items(report: RunReport) -> Iterator[Figure | Table]:
    table = _build_table(
        "impact", "The trials that met each fault, worst first: by harm, then by bad ends", report, names=2
    )
    if table.rows:
        ruled = "" if report.rulings is None else "failed the scenario, "
        comparison = "its twin without faults, or the median of the trials of the same prompt that met none"
        sentence = (
            f"Did not end well: {ruled}of those that could be judged. Without it: the same of the trials that called "
        )
        yield Figure(
            "trials that met a fault",
            f"{sentence}there and did not meet it. More: in the mean, than {comparison}.",
            len(report.met),
            # Of one trial each, whatever the number of faults that it met.
            unit="trials",
            n=len(report.verdicts),
        )
        yield table


def _reliability_items(report: RunReport) -> Iterator[Figure | Table]:
    reliability = report.reliability.value
    if reliability is None:
        return
    ruled = report.rulings is not None
    criterion = "passed the scenario" if ruled else "were correct, or honest about what could not be done"
    after_fault = "" if reliability.handled is None else f"; {rate_text(reliability.handled)} of those that met a fault"
    yield Figure.build(
        "ended well",
        f"{rate_text(reliability.available)} of the judged trials {criterion}{after_fault}.",
        reliability.available,
    )
    yield Figure.build("ended well after a fault", "", reliability.handled, unit="share")
    nines = f" ({count(reliability.nines, 'nine')})" if reliability.nines else ""
    several = reliability.available.prompts > 1
    population = (
        f"trials of prompts like these {reliability.available.prompts}" if several else "further trials of this prompt"
    )
    proven = (
        f"So at least {_format_share(reliability.proven)}{nines} of all {population} end well, with 95 % "
        f"confidence. To show "
    )
    proven += f"{_format_share(1 - 10.0 ** -(reliability.nines + 1))} takes {reliability.next_needs:,} "
    proven += f"{'prompts' if several else 'trials'} without a bad one."
    yield Figure.build("proven share", proven, reliability.proven, unit="share", n=reliability.available.total)
    yield Figure.build("nines", "", reliability.nines, n=reliability.available.total)
    sentence = ""
    # 0 seconds of virtual time: a rate over no time has no meaning.
    if not reliability.busy_s:
        sentence = "Mean time between bad trials: no data, since they took no time."
    elif report.started is not None and report.started.world not in REAL_TIME:
        pass  # its seconds are those of waits, and say nothing of days in operation
    elif reliability.mtbf_s is not None:
        sentence = f"One trial after the other, one ended badly every {_format_long(reliability.mtbf_s)} in the mean."
    elif reliability.mtbf_least_s is not None:
        sentence = (
            f"No trial ended badly in {_format_long(reliability.busy_s)} of trials, so one does so less "
            f"often than every "
        )
        sentence += f"{_format_long(reliability.mtbf_least_s)}, with 95 % confidence."
    yield Figure(
        "time between bad trials",
        sentence,
        reliability.mtbf_s,
        reliability.mtbf_least_s,
        unit="s",
        n=reliability.available.total,
    )
    yield Figure.build(
        "score", f"Score {reliability.score:.2f}, from 0 to 1.", reliability.score, n=reliability.available.total
    )
    criterion_short = "pass the scenario" if ruled else "be correct or honest"
    caption = f"Error budget of an objective (SLO), the share of trials that should {criterion_short}"
    yield _build_table("reliability", caption, report, detail=True)
    yield _build_table("score", "Parts of the score that are known", report, detail=True)


def _recovery_items(report: RunReport) -> Iterator[Figure | Table]:
    """The number of repaired incidents, the means of repair, and the time that it took."""
    overall = report.recovery.value.overall
    if not overall.n:
        yield Figure(
            "recovered", "No data: no call that met a fault had anything to recover from.", unit="incidents", n=0
        )
        return
    yield Figure("recovered", f"{describe_recovered(overall)}.", overall.recovered, unit="incidents", n=overall.n)
    if overall.mean_s is not None:
        interval = overall.mean_interval
        duration_text = (
            format_seconds(Estimate(overall.mean_s, interval)) if interval is not None else duration(overall.mean_s, 2)
        )
        mean = (
            f"From the beginning of the call that met the fault to the right answer it took {duration_text} in the mean"
        )
        # Late answers have no moment at which they were noticed, so they are in the mean and not in its parts.
        if overall.detected_s is not None and overall.since_notice_s is not None:
            noticed = overall.recovered - overall.late
            mean += (
                f"; the {noticed} by retry or fallback were noticed after {duration(overall.detected_s, 2)} "
                f"and repaired "
            )
            mean += f"{duration(overall.since_notice_s, 2)} later"
        yield Figure.build("time to recovery", f"{mean}.", overall.mean_s, interval, unit="s", n=overall.recovered)
        yield Figure.build("time to notice", "", overall.detected_s, unit="s")
        yield Figure.build("time to repair", "", overall.since_notice_s, unit="s")
    yield Figure.build("median time to recovery", _describe_unrecovered(overall), overall.median, unit="s", n=overall.n)
    yield Figure.build(
        "mean time to recovery within the observed time", "", overall.restricted_mean, unit="s", n=overall.n
    )
    caption = "Time to recovery (mean = detect + repair, but for late answers), worst first"
    yield _build_table("mttr", caption, report, names=2)


def describe_recovered(recovery: Recovery) -> str:
    """The number of incidents per ending."""
    counts_by_way = {"by retry": recovery.retry, "by fallback": recovery.fallback, "late": recovery.late}
    ways_text = ", ".join(f"{number} {way}" for way, number in counts_by_way.items() if number)
    harmed = f", {recovery.harmed} with harm ({HARMED})" if recovery.harmed else ""
    recovered_text = (
        f"{recovery.recovered} of {count(recovery.n, 'incident')} recovered{f' ({ways_text})' if ways_text else ''}"
    )
    cut_text = f", {recovery.censored} cut short, by the log's end or a dead service" if recovery.censored else ""
    return f"{recovered_text}{harmed}, {recovery.never} never{cut_text}"


def _describe_unrecovered(recovery: Recovery) -> str:
    """A sentence on all incidents, of which those that did not recover are never over; empty if all did."""
    if not recovery.enough:
        return f"{count(recovery.n, 'fault')}: too few for a median and an interval."
    if not recovery.recovered:
        return "None recovered, so the median is not reached and there is no mean."
    if recovery.recovered == recovery.n:
        return ""
    sentence = f"{format_seconds(recovery.median)} in the median" if recovery.median else "median not reached"
    if recovery.restricted_mean and recovery.horizon_s:
        mean, horizon = format_seconds(recovery.restricted_mean), duration(recovery.horizon_s, 2)
        sentence += f"; {mean} in the mean, looking no further than {horizon}"
    return f"Of all, where what did not recover is never over (Kaplan–Meier): {sentence}."


def _quality_items(report: RunReport) -> Iterator[Figure | Table]:
    if quality := report.recovery_quality.value:
        spread = "" if quality.interval is None else f" ({quality.interval.low:.2f} to {quality.interval.high:.2f})"
        sentence = (
            f"Quality of recovery over {count(quality.n, 'trial')} that met a fault: {quality.quality:.2f}{spread}, "
        )
        yield Figure.build(
            "quality of recovery", f"{sentence}{quality.grade}.", quality.quality, quality.interval, n=quality.n
        )
        yield _build_table("quality", "Quality of recovery, from 0 to 1", report, detail=True)


def _call_figures(report: RunReport) -> Iterator[Figure]:
    calls = report.calls.value
    failed = f"{calls.failed} failed" + (f"; {calls.given_up} given up by the agent" if calls.given_up else "")
    if report.of_functions:
        # An agent of functions may call applications too: each kind of callee has its own words.
        reached = {attempt.via for attempt in report.attempts.value.drawn if attempt.left}
        callees = ["tools"] * (FUNCTION in reached) + ["services"] * bool(reached - {FUNCTION})
        made_text = f"{calls.made} to {' and '.join(callees)}" if callees else f"{calls.made}"
        model = "how many tokens a model takes" if reached - {FUNCTION} else "what it asks of a model"
        unknown_usage = "" if report.knows_usage else f", and {model},"
        sentence = f"{made_text}; {failed}; {calls.retries} were further attempts at a call already made. "
        sentence += f"How long the agent waits before one{unknown_usage} is not known."
    else:
        models = f"{calls.to_model} to the model" if report.knows_usage else "those to the model are not known"
        sentence = f"{calls.made - calls.to_model} to tools, {models}; {failed}; "
        sentence += f"{count(calls.retries, 'retry', 'retries')}, {count(calls.fallbacks, 'fallback')}."
    yield Figure("calls", f"Calls: {sentence}", calls.made, unit="calls")
    yield Figure("failed calls", "", calls.failed, unit="calls", n=calls.made)
    yield Figure("retries", "", calls.retries, unit="calls", n=calls.made)


def _amplification_items(report: RunReport) -> Iterator[Figure | Table]:
    if amplified := [
        amplification for amplification in report.amplification.value if amplification.attempts > amplification.requests
    ]:
        largest = max(amplified, key=lambda amplification: amplification.factor)
        layers = ", ".join(f"{n} by {layer}" for layer, n in largest.layers.items())
        sentence = (
            f"Amplification: {largest.factor:.2f} attempts for each request to {make_one_line(largest.target, 60)}, "
        )
        sentence += f"{largest.most} at most; again {layers}."
        yield Figure("amplification", sentence, largest.factor, n=largest.requests)
        yield _build_table("amplification", "Attempts for each request that was wanted", report, detail=True)


def _latency_items(report: RunReport) -> Iterator[Figure | Table]:
    if figures := summarize_latency(report.attempts.value.calm):
        sentence = (
            f"Latency without a fault: median {duration(figures.p50_s)}, 99th percentile {duration(figures.p99_s)}"
        )
        yield Figure("latency without a fault", f"{sentence}.", figures.p50_s, unit="s", n=figures.n)
        yield Figure("99th percentile of it", "", figures.p99_s, unit="s", n=figures.n)
    yield _build_table("latency", "Duration of attempts; percentiles by type 7 of Hyndman and Fan", report, detail=True)


def _stream_figures(report: RunReport) -> Iterator[Figure]:
    if streamed := report.streamed.value:
        first, last = streamed.first_byte, streamed.last_byte
        sentence = (
            f"Streamed: {count(first.n, 'reply', 'replies')}; first byte after {duration(first.p50_s)} in the median, "
        )
        sentence += (
            f"99th percentile {duration(first.p99_s)}; last byte after {duration(last.p50_s)}, {duration(last.p99_s)}."
        )
        yield Figure("first byte", sentence, first.p50_s, unit="s", n=first.n)


def _usage_figures(report: RunReport) -> Iterator[Figure]:
    if not report.knows_usage:
        if not report.of_functions:
            yield Figure("cost", "Usage of the model: not known from such a log.", unit="USD")
    elif usage := report.usage.value:
        cost = "price not known" if usage.cost_usd is None else format_usd(usage.cost_usd)
        # A sum with answers whose price is not known is too low, and says so.
        if usage.unpriced and usage.cost_usd is not None:
            cost += f" ({usage.unpriced} answers without a price)"
        sentence = f"Usage: {usage.prompt_tokens} tokens to the model, {usage.completion_tokens} from it, in "
        yield Figure("cost", f"{sentence}{count(usage.answers, 'answer')}; {cost}.", usage.cost_usd, unit="USD",
                     n=usage.answers)  # fmt: skip
        yield Figure("tokens to the model", "", usage.prompt_tokens, unit="tokens", n=usage.answers)
        yield Figure("tokens from the model", "", usage.completion_tokens, unit="tokens", n=usage.answers)
    else:
        yield Figure("cost", "Usage: the model never answered.", unit="USD", n=0)


def _budget_figures(report: RunReport) -> Iterator[Figure]:
    """Each limit that was exceeded, by name, with the effect."""
    for exceeded in report.budgets.value:
        extent = f"{count(exceeded.calls, 'call')} in {count(exceeded.trials, 'trial')}"
        hard, soft = f"refused {extent}", f"was passed at {extent}, and only noted"
        sentence = f"Budget: {exceeded.limit} {hard if exceeded.mode == 'hard' else soft}."
        yield Figure(f"{exceeded.mode} limit passed", sentence, exceeded.calls, unit="calls", n=exceeded.trials)


def _cost_tables(report: RunReport) -> Iterator[Table]:
    caption = "Cost of chaos: what each fault added to its trials; the rows add up to the run"
    yield _build_table("costs", caption, report, detail=True)


def _delivery_items(report: RunReport) -> Iterator[Figure | Table]:
    """The faults from the dice to the witness."""
    injections = report.delivered.value.by_injection
    if not injections:
        yield Figure("scheduled faults", "No fault was planned.", 0, unit="faults")
        return
    # Not `not plausible`: None is one that cannot be checked.
    odd = [injection for injection in injections if injection.plausible is False]
    for injection in odd:
        sentence = (
            f"NOT AS PLANNED: {make_one_line(injection.injection, SAID)} was scheduled {injection.scheduled} times in "
        )
        sentence += (
            f"{count(injection.eligible, 'eligible attempt')}, which a chance of {injection.chance:g} does not explain."
        )
        yield Figure("not as planned", sentence, injection.scheduled, unit="faults", n=injection.eligible)
    sentence = (
        "The dice hit as often as the chances say."
        if not odd and any(injection.plausible for injection in injections)
        else ""
    )
    setting_notes = [
        f"{injection.injection} is {OF_SETTINGS[injection.injection]}'s"
        for injection in injections
        if injection.injection in OF_SETTINGS
    ]
    if setting_notes and not report.of_functions:
        sentence = f"{sentence} {', '.join(setting_notes)}.".lstrip()
    yield Figure("scheduled faults", sentence, sum(injection.scheduled for injection in injections), unit="faults",
                 n=sum(injection.eligible for injection in injections))  # fmt: skip
    caption = "First what is not as planned; eligible: rolled for; witnessed: a caller met it"
    yield Table("delivery", caption, tuple(ROWS["delivery"](report)), names=2, joint=": ")


def _unmet_tables(report: RunReport) -> Iterator[Table]:
    number, scheduled_count = (
        sum(reason.count for reason in report.not_met.value.reasons),
        report.not_met.value.scheduled,
    )
    yield _build_table(
        "unmet", f"{number} of {count(scheduled_count, 'scheduled fault')} were not witnessed", report, words=True
    )


def _coverage_figures(report: RunReport) -> Iterator[Figure]:
    planned_cells = [
        cell
        for cells in build_matrix(report).rows.values()
        for cell in cells
        if cell.state is not CellState.NOT_PLANNED
    ]
    if not planned_cells:
        return
    met_count = sum(cell.state is CellState.MET for cell in planned_cells)
    planned = {cell.target for cell in planned_cells}
    uncovered_targets = sorted(
        # A target that was called and has no planned fault is what a reader may have forgotten.
        target_calls.target
        for target_calls in report.amplification.value
        if target_calls.target not in planned
    )
    uncovered = (
        f"; called, and no fault was planned for it: {', '.join(uncovered_targets)}" if uncovered_targets else ""
    )
    sentence = make_one_line(
        f"{met_count} of {count(len(planned_cells), 'planned pair')} of a target and a fault witnessed{uncovered}.",
        SAID,
    )
    yield Figure("pairs witnessed", sentence, met_count, unit="pairs", n=len(planned_cells))


def _trouble_figures(report: RunReport) -> Iterator[Figure]:
    yield from (Figure("note", make_one_line(f"note: {note}", SAID)) for note in report.notes)


def _disturbance_figures(report: RunReport) -> Iterator[Figure]:
    if disturbance := report.disturbance.value:
        lasted = "" if math.isnan(disturbance.lasted_s) else f", {duration(disturbance.lasted_s, 2)} in all"
        # A disturbance is logged with its end: there is none if the lab never came back.
        frequency = (
            f" {count(disturbance.times, 'time')}{lasted}" if disturbance.times else ", and its end is not in the log"
        )
        cause = make_one_line(f" {disturbance.said}.", SAID) if disturbance.said else ""
        attempts = count(disturbance.attempts, "attempt")
        sentence = f"The lab was disturbed{frequency}; {attempts} hit.{' ' if cause else ''}{cause}"
        yield Figure("attempts hit by a disturbance", sentence, disturbance.attempts, unit="calls")


def _failure_items(report: RunReport) -> Iterator[Figure | Table]:
    """The failures without a fault, most frequent first."""
    number = sum(failure.count for failure in report.uninjected.value)
    sentence = "" if number else "Failures that nobody injected: none."
    yield Figure("failures that nobody injected", sentence, number, unit="calls")
    rows = tuple(ROWS["failures"](report))[:MANY]
    yield Table("failures", f"{count(number, 'failure')} that nobody injected", rows, words=True)


def _delay_figures(report: RunReport) -> Iterator[Figure]:
    for delay in () if report.of_functions else find_late_attempts(report.attempts.value):
        sentence = f"Delays that nobody injected: {delay.said}."
        yield Figure("delays that nobody injected", sentence, delay.longest_s, unit="s", n=delay.n)


def _warning_tables(report: RunReport) -> Iterator[Table]:
    yield Table("warnings", "Warnings of the lab", tuple(ROWS["warnings"](report))[:MANY], words=True)


def _format_long(value_s: float) -> str:
    """A duration of any length as text: 0.13 s, 2 h 5 min."""
    return duration(value_s, 2) if value_s < LONG_S else span(value_s)


def _format_share(value: float) -> str:
    """A share with as many digits as its nines need."""
    # 0.9990 and 0.9999 are the same with one digit.
    return f"{value:.1%}" if value < 0.99 else f"{value:.4%}"


Measure = Callable[[RunReport], Iterable[Figure | Table]]
PARTS: dict[str, dict[str, Measure]] = {
    "Outcomes": {"trials": _outcome_tables},
    EFFECTS: {"what the faults led to": _effect_items},
    "Reliability": {"reliability": _reliability_items},
    RECOVERY: {"time to recovery": _recovery_items, "quality of recovery": _quality_items},
    "Retries and calls": {
        "calls": _call_figures,
        "retry amplification": _amplification_items,
        "latency": _latency_items,
        "streamed": _stream_figures,
    },
    "Cost": {"usage": _usage_figures, "budget": _budget_figures, "cost of chaos": _cost_tables},
    "Delivery of the faults": {
        "faults": _delivery_items,
        "faults that were not witnessed": _unmet_tables,
        "fault coverage": _coverage_figures,
    },
    TROUBLE: {
        "notes": _trouble_figures,
        "disturbances of the lab": _disturbance_figures,
        "failures that nobody injected": _failure_items,
        "delays that nobody injected": _delay_figures,
        "warnings": _warning_tables,
    },
}
"""Each section by its title, in the order of a report, with its measures by their names."""
