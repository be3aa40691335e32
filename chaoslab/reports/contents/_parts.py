"""The sections of a report: the figures of a run, each with its sentence, and its tables. A further measure is a
function in `PARTS`, or a table in `_tables.ROWS`."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain, islice
from typing import Any

from chaoslab.analysis.measures.incidents import HARMED
from chaoslab.analysis.measures.intervals import Estimate
from chaoslab.analysis.measures.latency import find_unusually_slow_attempts, summarize_latency
from chaoslab.analysis.measures.mttr import Recovery
from chaoslab.analysis.measures.reliability import Reliability
from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.analysis.verdict.guard import run_guarded
from chaoslab.base.durations import format_duration, format_long_duration
from chaoslab.reports.contents._matrix import CellState, build_matrix
from chaoslab.reports.contents._table import MANY, SAID, Figure, Section, Table
from chaoslab.reports.contents._tables import ROWS
from chaoslab.reports.page import format_count, format_rate, format_seconds, format_usd
from chaoslab.reports.text import make_one_line

REAL_TIME = ("", "local", "compose")
"""The worlds whose seconds are real ones; without a name it is another lab's."""
EFFECTS, RECOVERY, CALLS = "What the faults led to", "Recovery", "Retries and calls"
TROUBLE = "What nobody injected"
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
            items += run_guarded(
                partial(_list_key_figures_and_tables, measure, report), partial(_make_unknown_key_figure, name)
            )
        figures = tuple(item for item in items if isinstance(item, Figure))
        sections.append(Section(title, figures, tuple(item for item in items if isinstance(item, Table))))
    return tuple(part for part in sections if part.figures or part.tables)


def join_key_figure_sentences(report: RunReport, title: str, *names: str) -> str:
    """The sentences of these figures of a section, for the line below a chart's title."""
    items = [item for measure in PARTS[title].values() for item in measure(report)]
    return " ".join(item.said for item in items if isinstance(item, Figure) and item.name in names and item.said)


def _list_key_figures_and_tables(measure: "Measure", report: RunReport) -> list[Figure | Table]:
    return [item for item in measure(report) if not isinstance(item, Table) or item.rows]


def _make_unknown_key_figure(name: str, reason: str) -> list[Figure | Table]:
    return [Figure(name, f"{name}: unknown ({make_one_line(reason, SAID)})")]


def _build_table(
    name: str, caption: str, report: RunReport, *, rows_max: int | None = None, **table_options: Any
) -> Table:
    return Table(name, caption, tuple(islice(ROWS[name](report), rows_max)), **table_options)


def _outcome_tables(report: RunReport) -> Iterator[Table]:
    yield _build_table("outcomes", "How the trials ended", report)


def _impact_items(report: RunReport) -> Iterator[Figure | Table]:
    caption = "The trials that met each fault, worst first: by harm, then by bad ends"
    table = _build_table("impact", caption, report, names=2)
    if not table.rows:
        return
    ruled = "" if report.rulings is None else "failed the scenario, "
    sentence = (
        f"Did not end well: {ruled}of those that could be judged. Without it: the same of the trials that called there "
        "and did not meet it. More: in the mean, than its twin without faults, or the median of the trials of the same "
        "prompt that met none."
    )
    # Of one trial each, whatever the number of faults that it met.
    yield Figure("trials that met a fault", sentence, len(report.met), unit="trials", n=len(report.verdicts))
    yield table


def _reliability_items(report: RunReport) -> Iterator[Figure | Table]:
    reliability = report.reliability.value
    if reliability is None:
        return
    judged, ruled = reliability.available.total, report.rulings is not None
    criterion = "passed the scenario" if ruled else "were correct, or honest about what could not be done"
    after_fault = (
        "" if reliability.handled is None else f"; {format_rate(reliability.handled)} of those that met a fault"
    )
    sentence = f"{format_rate(reliability.available)} of the judged trials {criterion}{after_fault}."
    yield Figure.build("ended well", sentence, reliability.available)
    yield Figure.build("ended well after a fault", "", reliability.handled, unit="share")
    nines = f" ({format_count(reliability.nines, 'nine')})" if reliability.nines else ""
    prompts = reliability.available.prompts
    population, needed = "further trials of this prompt", "trials"
    if prompts > 1:
        population, needed = f"trials of prompts like these {prompts}", "prompts"
    sentence = (
        f"So at least {_format_share_by_nines(reliability.proven)}{nines} of all {population} end well, with 95 % "
        "confidence. "
        f"To show {_format_share_by_nines(1 - 10.0 ** -(reliability.nines + 1))} takes {reliability.next_needs:,} "
        f"{needed} "
        "without a bad one."
    )
    yield Figure.build("proven share", sentence, reliability.proven, unit="share", n=judged)
    yield Figure.build("nines", "", reliability.nines, n=judged)
    mtbf_s, least_s = reliability.mtbf_s, reliability.mtbf_least_s
    yield Figure("time between bad trials", _describe_mtbf(report, reliability), mtbf_s, least_s, unit="s", n=judged)
    criterion = "pass the scenario" if ruled else "be correct or honest"
    caption = f"Error budget of an objective (SLO), the share of trials that should {criterion}"
    yield _build_table("reliability", caption, report, detail=True)


def _describe_mtbf(report: RunReport, reliability: Reliability) -> str:
    # 0 seconds of virtual time: a rate over no time has no meaning.
    if not reliability.busy_s:
        return "Mean time between bad trials: no data, since they took no time."
    # The seconds of another world are those of waits, and say nothing of days in operation.
    if report.started is not None and report.started.world not in REAL_TIME:
        return ""
    if reliability.mtbf_s is not None:
        return (
            f"One trial after the other, one ended badly every {_format_long_duration(reliability.mtbf_s)} in the mean."
        )
    least = _format_long_duration(reliability.mtbf_least_s or 0.0)
    return (
        f"No trial ended badly in {_format_long_duration(reliability.busy_s)} of trials, so one does so less often "
        "than every "
        f"{least}, with 95 % confidence."
    )


def _recovery_items(report: RunReport) -> Iterator[Figure | Table]:
    """The number of repaired incidents, the means of repair, and the time that it took."""
    overall = report.recovery.value.overall
    if not overall.n:
        sentence = "No data: no call that met a fault had anything to recover from."
        yield Figure("recovered", sentence, unit="incidents", n=0)
        return
    yield Figure(
        "recovered", f"{describe_recovery_counts(overall)}.", overall.recovered_count, unit="incidents", n=overall.n
    )
    if (mean_s := overall.mean_s) is not None:
        interval = overall.mean_interval
        time_text = format_duration(mean_s, 2) if interval is None else format_seconds(Estimate(mean_s, interval))
        sentence = "From the beginning of the call that met the fault to the right answer it took "
        sentence += f"{time_text} in the mean"
        # Late answers have no moment at which they were noticed, so they are in the mean and not in its parts.
        if overall.detected_s is not None and overall.since_notice_s is not None:
            detect, repair = format_duration(overall.detected_s, 2), format_duration(overall.since_notice_s, 2)
            noticed = overall.recovered_count - overall.late
            sentence += f"; the {noticed} by retry or fallback were noticed after {detect} and repaired {repair} later"
        yield Figure.build("time to recovery", f"{sentence}.", mean_s, interval, unit="s", n=overall.recovered_count)
        yield Figure.build("time to notice", "", overall.detected_s, unit="s")
        yield Figure.build("time to repair", "", overall.since_notice_s, unit="s")
    yield Figure.build(
        "median time to recovery", _describe_recovery_time(overall), overall.median, unit="s", n=overall.n
    )
    name = "mean time to recovery within the observed time"
    yield Figure.build(name, "", overall.restricted_mean, unit="s", n=overall.n)
    caption = "Time to recovery (mean = detect + repair, but for late answers), worst first"
    yield _build_table("mttr", caption, report, names=2)


def describe_recovery_counts(recovery: Recovery) -> str:
    """The number of incidents per ending."""
    counts_by_way = {"by retry": recovery.retry, "by fallback": recovery.fallback, "late": recovery.late}
    ways_text = ", ".join(f"{number} {way}" for way, number in counts_by_way.items() if number)
    text = (
        f"{recovery.recovered_count} of {format_count(recovery.n, 'incident')} "
        f"recovered{f' ({ways_text})' if ways_text else ''}"
    )
    text += f", {recovery.harmed} with harm ({HARMED})" if recovery.harmed else ""
    cut_text = f", {recovery.censored} cut short, by the log's end or a dead service" if recovery.censored else ""
    return f"{text}, {recovery.never} never{cut_text}"


def _describe_recovery_time(recovery: Recovery) -> str:
    """A sentence on all incidents, of which those that did not recover are never over; empty if all did."""
    if not recovery.has_enough_data:
        return f"{format_count(recovery.n, 'fault')}: too few for a median and an interval."
    if not recovery.recovered_count:
        return "None recovered, so the median is not reached and there is no mean."
    if recovery.recovered_count == recovery.n:
        return ""
    sentence = f"{format_seconds(recovery.median)} in the median" if recovery.median else "median not reached"
    if recovery.restricted_mean and recovery.horizon_s:
        mean, horizon = format_seconds(recovery.restricted_mean), format_duration(recovery.horizon_s, 2)
        sentence += f"; {mean} in the mean, looking no further than {horizon}"
    return f"Of all, where what did not recover is never over (Kaplan–Meier): {sentence}."


def _call_key_figures(report: RunReport) -> Iterator[Figure]:
    calls = report.calls.value
    failed = f"{calls.failed} failed" + (f"; {calls.given_up} given up by the agent" if calls.given_up else "")
    if report.of_functions:
        # An agent of functions may call applications too: each kind of callee has its own words.
        ways = report.attempts.value.ways
        services = bool(ways - {FUNCTION})
        callees = ["tools"] * (FUNCTION in ways) + ["services"] * services
        model = "how many tokens a model takes" if services else "what it asks of a model"
        unknown_usage = "" if report.knows_usage else f", and {model},"
        sentence = (
            f"{' to '.join(filter(None, [str(calls.made), ' and '.join(callees)]))}; {failed}; {calls.retries} were "
            f"further attempts at a call already made. How long the agent waits before one{unknown_usage} is not known."
        )
    else:
        retries, fallbacks = format_count(calls.retries, "retry", "retries"), format_count(calls.fallbacks, "fallback")
        sentence = f"{calls.made - calls.to_model} to tools, {calls.to_model} to the model; {failed}; "
        sentence += f"{retries}, {fallbacks}."
    yield Figure("calls", f"Calls: {sentence}", calls.made, unit="calls")
    yield Figure("failed calls", "", calls.failed, unit="calls", n=calls.made)
    yield Figure("retries", "", calls.retries, unit="calls", n=calls.made)


def _amplification_items(report: RunReport) -> Iterator[Figure | Table]:
    if amplified := [entry for entry in report.amplification.value if entry.attempts > entry.requests]:
        largest = max(amplified, key=lambda entry: entry.factor)
        layers = ", ".join(f"{n} by {layer}" for layer, n in largest.layers.items())
        target = make_one_line(largest.target, 60)
        sentence = f"Amplification: {largest.factor:.2f} attempts for each request to {target}, "
        yield Figure("amplification", f"{sentence}{largest.most} at most; again {layers}.", largest.factor,
                     n=largest.requests)  # fmt: skip
        yield _build_table("amplification", "Attempts for each request", report, detail=True)


def _latency_items(report: RunReport) -> Iterator[Figure | Table]:
    attempts = report.attempts.value
    if figures := summarize_latency(attempts.unfaulted_durations):
        median, slow = format_duration(figures.p50_s), format_duration(figures.p99_s)
        sentence = (
            f"Latency without a fault: {format_count(figures.n, 'attempt')}, median {median}, 99th percentile {slow}"
        )
        sentence += (
            f"; {format_count(attempts.unreached, 'attempt')} never reached the target" if attempts.unreached else ""
        )
        yield Figure("latency without a fault", f"{sentence}.", figures.p50_s, unit="s", n=figures.n)
        yield Figure("99th percentile of it", "", figures.p99_s, unit="s", n=figures.n)
    yield _build_table("latency", "Duration of attempts; percentiles by type 7 of Hyndman and Fan", report, detail=True)


def _streamed_reply_key_figures(report: RunReport) -> Iterator[Figure]:
    if streamed := report.streamed.value:
        first, last = streamed.first_byte, streamed.last_byte
        sentence = (
            f"Streamed: {format_count(first.n, 'reply', 'replies')}; first byte after {format_duration(first.p50_s)} "
            "in the median, "
            f"99th percentile {format_duration(first.p99_s)}; last byte after {format_duration(last.p50_s)}, "
            f"{format_duration(last.p99_s)}."
        )
        yield Figure("first byte", sentence, first.p50_s, unit="s", n=first.n)


def _token_usage_key_figures(report: RunReport) -> Iterator[Figure]:
    if not report.knows_usage:
        return
    if (usage := report.usage.value) is None:
        yield Figure("cost", "Usage: the model never answered.", unit="USD", n=0)
        return
    cost = "price not known" if usage.cost_usd is None else format_usd(usage.cost_usd)
    # A sum with answers whose price is not known is too low, and says so.
    if usage.unpriced and usage.cost_usd is not None:
        cost += f" ({usage.unpriced} answers without a price)"
    sentence = f"Usage: {usage.prompt_tokens} tokens to the model, {usage.completion_tokens} from it, in "
    sentence += f"{format_count(usage.answers, 'answer')}; {cost}."
    yield Figure("cost", sentence, usage.cost_usd, unit="USD", n=usage.answers)
    yield Figure("tokens to the model", "", usage.prompt_tokens, unit="tokens", n=usage.answers)
    yield Figure("tokens from the model", "", usage.completion_tokens, unit="tokens", n=usage.answers)


def _exceeded_budget_key_figures(report: RunReport) -> Iterator[Figure]:
    """Each limit that was exceeded, by name, with the effect."""
    for exceeded in report.budgets.value:
        extent = f"{format_count(exceeded.calls, 'call')} in {format_count(exceeded.trials, 'trial')}"
        effect = f"refused {extent}" if exceeded.mode == "hard" else f"was passed at {extent}, and only noted"
        sentence = f"Budget: {exceeded.limit} {effect}."
        yield Figure(f"{exceeded.mode} limit passed", sentence, exceeded.calls, unit="calls", n=exceeded.trials)


def _fault_cost_tables(report: RunReport) -> Iterator[Table]:
    caption = "Cost of chaos: what each fault added to its trials; the rows add up to the run"
    yield _build_table("costs", caption, report, detail=True)


def _fault_delivery_items(report: RunReport) -> Iterator[Figure | Table]:
    """The faults from the dice to the witness."""
    injections = report.delivered.value.by_injection
    if not injections:
        yield Figure("scheduled faults", "No fault was planned.", 0, unit="faults")
        return
    # Not `not plausible`: None is one that cannot be checked.
    odd = [entry for entry in injections if entry.plausible is False]
    for entry in odd:
        sentence = (
            f"NOT AS PLANNED: {make_one_line(entry.injection, SAID)} was scheduled {entry.scheduled} times in "
            f"{format_count(entry.eligible, 'eligible attempt')}, which a chance of {entry.chance:g} does not explain."
        )
        yield Figure("not as planned", sentence, entry.scheduled, unit="faults", n=entry.eligible)
    plausible = not odd and any(entry.plausible for entry in injections)
    sentence = "No fault was scheduled more or less often than its chance explains." if plausible else ""
    names = [entry.injection for entry in injections if entry.injection in OF_SETTINGS]
    of_settings = [f"{name} is {OF_SETTINGS[name]}'s" for name in names]
    if of_settings and not report.of_functions:
        sentence = f"{sentence} {', '.join(of_settings)}.".lstrip()
    yield Figure("scheduled faults", sentence, sum(entry.scheduled for entry in injections), unit="faults",
                 n=sum(entry.eligible for entry in injections))  # fmt: skip
    caption = "First what is not as planned; eligible: rolled for; witnessed: a caller met it"
    yield _build_table("delivery", caption, report, names=2, joint=": ")


def _unmet_fault_tables(report: RunReport) -> Iterator[Table]:
    not_met = report.not_met.value
    number, scheduled = (
        sum(reason.count for reason in not_met.reasons),
        format_count(not_met.scheduled, "scheduled fault"),
    )
    yield _build_table("unmet", f"{number} of {scheduled} were not witnessed", report, words=True)


def _fault_coverage_key_figures(report: RunReport) -> Iterator[Figure]:
    all_cells = chain.from_iterable(build_matrix(report).rows.values())
    cells = [cell for cell in all_cells if cell.state is not CellState.NOT_PLANNED]
    if not cells:
        return
    met_count, planned = sum(cell.state is CellState.MET for cell in cells), {cell.target for cell in cells}
    # A target that was called and has no planned fault is what a reader may have forgotten.
    forgotten = sorted(entry.target for entry in report.amplification.value if entry.target not in planned)
    uncovered = f"; called, and no fault was planned for it: {', '.join(forgotten)}" if forgotten else ""
    sentence = (
        f"{met_count} of {format_count(len(cells), 'planned pair')} of a target and a fault witnessed{uncovered}."
    )
    yield Figure("pairs witnessed", make_one_line(sentence, SAID), met_count, unit="pairs", n=len(cells))


def _note_key_figures(report: RunReport) -> Iterator[Figure]:
    yield from (Figure("note", make_one_line(f"note: {note}", SAID)) for note in report.notes)


def _lab_disturbance_key_figures(report: RunReport) -> Iterator[Figure]:
    if disturbance := report.disturbance.value:
        lasted = (
            f" {format_count(disturbance.span_count, 'time')}, {format_duration(disturbance.total_seconds, 2)} in all"
        )
        # A disturbance is logged with its end: there is none if the lab never came back.
        frequency = lasted if disturbance.span_count else ", and its end is not in the log"
        cause = make_one_line(f" {disturbance.spans_text}.", SAID) if disturbance.spans_text else ""
        attempts = format_count(disturbance.attempt_count, "attempt")
        sentence = f"The lab was disturbed{frequency}; {attempts} hit.{' ' if cause else ''}{cause}"
        yield Figure("attempts hit by a disturbance", sentence, disturbance.attempt_count, unit="calls")


def _uninjected_failure_items(report: RunReport) -> Iterator[Figure | Table]:
    """The failures without a fault, most frequent first."""
    number = sum(failure.count for failure in report.uninjected.value)
    sentence = "" if number else "Failures that nobody injected: none."
    yield Figure("failures that nobody injected", sentence, number, unit="calls")
    caption = f"{format_count(number, 'failure')} that nobody injected"
    yield _build_table("failures", caption, report, rows_max=MANY, words=True)


def _uninjected_delay_key_figures(report: RunReport) -> Iterator[Figure]:
    for delay in () if report.of_functions else find_unusually_slow_attempts(report.attempts.value):
        sentence = f"Delays that nobody injected: {delay.summary_text}."
        yield Figure("delays that nobody injected", sentence, delay.longest_s, unit="s", n=delay.n)


def _warning_tables(report: RunReport) -> Iterator[Table]:
    yield _build_table("warnings", "Warnings of the lab", report, rows_max=MANY, words=True)


def _format_long_duration(value_s: float) -> str:
    """A duration of any length as text: 0.13 s, 2 h 5 min."""
    return format_duration(value_s, 2) if value_s < LONG_S else format_long_duration(value_s)


def _format_share_by_nines(value: float) -> str:
    """A share with as many digits as its nines need."""
    # 0.9990 and 0.9999 are the same with one digit.
    return f"{value:.1%}" if value < 0.99 else f"{value:.4%}"


Measure = Callable[[RunReport], Iterable[Figure | Table]]
PARTS: dict[str, dict[str, Measure]] = {
    "Outcomes": {"trials": _outcome_tables},
    EFFECTS: {"what the faults led to": _impact_items},
    "Reliability": {"reliability": _reliability_items},
    RECOVERY: {"time to recovery": _recovery_items},
    CALLS: {
        "calls": _call_key_figures,
        "retry amplification": _amplification_items,
        "latency": _latency_items,
        "streamed": _streamed_reply_key_figures,
    },
    "Cost": {
        "usage": _token_usage_key_figures,
        "budget": _exceeded_budget_key_figures,
        "cost of chaos": _fault_cost_tables,
    },
    "Delivery of the faults": {
        "faults": _fault_delivery_items,
        "faults that were not witnessed": _unmet_fault_tables,
        "fault coverage": _fault_coverage_key_figures,
    },
    TROUBLE: {
        "notes": _note_key_figures,
        "disturbances of the lab": _lab_disturbance_key_figures,
        "failures that nobody injected": _uninjected_failure_items,
        "delays that nobody injected": _uninjected_delay_key_figures,
        "warnings": _warning_tables,
    },
}
"""Each section by its title, in the order of a report, with its measures by their names."""
