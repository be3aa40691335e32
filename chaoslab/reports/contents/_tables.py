"""The rows of a run's measures. JSON, tables of Python and reports for people have the same."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from chaoslab.analysis.measures.cost import Spending
from chaoslab.analysis.measures.faults import STAGES, FaultCount
from chaoslab.analysis.measures.impact import Impact
from chaoslab.analysis.measures.latency import summarize_latency
from chaoslab.analysis.measures.mttr import Recovery
from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.analysis.verdict.table import Outcome
from chaoslab.reports.contents._table import ALL, SAID, Row, finite_or_none
from chaoslab.reports.text import make_one_line

T_ = TypeVar("T_")
Place = tuple[str, str]


def iterate_faults_by_target(by_fault: Mapping[str, T_], by_place: Mapping[Place, T_]) -> Iterator[tuple[Place, T_]]:
    """Each fault over all its targets, if there are several, and then at each of them, in the orders that they have."""
    for fault, total in by_fault.items():
        at_targets = [(key, value) for key, value in by_place.items() if key[0] == fault]
        # Of one target the sum is the same row again.
        if len(at_targets) != 1:
            yield (fault, ALL), total
        yield from at_targets


def _outcome_rows(report: RunReport) -> Iterator[Row]:
    rates = report.success.value.by_outcome
    for name in Outcome:
        if outcome_rate := rates.get(name):
            yield {
                "outcome": str(name),
                "trials": outcome_rate.count,
                "share": outcome_rate.value,
                **vars(outcome_rate.interval),
            }


def _impact_rows(report: RunReport) -> Iterator[Row]:
    """Worst first: by harm, then by bad ends, then by the time that was lost."""

    def worst_first_key(named: tuple[Any, Impact]) -> tuple[int, int, float]:
        impact = named[1]
        return -impact.outcomes.get(Outcome.HARM, 0), -impact.bad.count if impact.bad else 0, -(impact.lost_s or 0.0)

    by_fault, by_target = report.impacts.value.by_fault, report.impacts.value.by_target
    sorted_impacts = (
        dict(sorted(by_fault.items(), key=worst_first_key)),
        dict(sorted(by_target.items(), key=worst_first_key)),
    )
    for (fault, target), impact in iterate_faults_by_target(*sorted_impacts):
        outcome_counts = ", ".join(f"{n} {name}" for name in Outcome if (n := impact.outcomes.get(name)))
        rate = (
            {}
            if impact.bad is None
            else {"bad": impact.bad.count, "judged": impact.bad.total, **vars(impact.bad.interval)}
        )
        yield {
            "fault": fault, "target": target, "trials": impact.trials, **rate,
            "without": None if impact.without is None else impact.without.value, "more_s": impact.lost_s,
            "more_calls": impact.lost_calls, "outcomes": outcome_counts,
        }  # fmt: skip


def _mttr_rows(report: RunReport) -> Iterator[Row]:
    """Worst first: by harm, then by those that never recovered, then by the mean."""

    def worst_first_key(named: tuple[Any, Recovery]) -> tuple[int, int, float]:
        target_recovery = named[1]
        return -target_recovery.harmed, -target_recovery.never, -(target_recovery.mean_s or 0.0)

    recovery_measure = report.recovery.value
    by_place = {
        (fault, target): target_recovery
        for (target, fault), target_recovery in sorted(recovery_measure.by_target.items(), key=worst_first_key)
    }
    for (fault, target), target_recovery in iterate_faults_by_target(
        dict(sorted(recovery_measure.by_fault.items(), key=worst_first_key)), by_place
    ):
        yield {"fault": fault, "target": target, **build_recovery_row(target_recovery)}


def build_recovery_row(estimates: Recovery) -> dict[str, Any]:
    """The recovery of some incidents: `mttr_s` is `detect_s` and `repair_s` together, in the mean of those that
    recovered; those that were late and right have nothing to detect."""
    mean, median = estimates.mean_interval, estimates.median
    median_interval = median and median.interval
    return {
        "incidents": estimates.n,
        "recovered": estimates.recovered_count,
        "by_retry": estimates.retry,
        "by_fallback": estimates.fallback,
        "late": estimates.late,
        "with_harm": estimates.harmed,
        "never": estimates.never,
        "censored": estimates.censored,
        "mttr_s": estimates.mean_s,
        "mttr_low_s": mean and mean.low,
        "mttr_high_s": mean and mean.high,
        "detect_s": estimates.detected_s,
        "repair_s": estimates.since_notice_s,
        "median_s": median and median.value,
        "median_low_s": median_interval and median_interval.low,
        "median_high_s": median_interval and finite_or_none(median_interval.high),
    }


def _latency_rows(report: RunReport) -> Iterator[Row]:
    for target, target_attempts in sorted(report.attempts.value.by_target.items()):
        # With a fault and without one apart: together a delay of the lab's would be the service's.
        for is_faulted, durations in zip((False, True), target_attempts.unfaulted_and_faulted, strict=True):
            if figures := summarize_latency(durations):
                yield {
                    "target": target,
                    "met": is_faulted,
                    "attempts": figures.n,
                    "p50_s": figures.p50_s,
                    "p90_s": figures.p90_s,
                    "p99_s": figures.p99_s,
                    "longest_s": figures.longest_s,
                }


def _amplification_rows(report: RunReport) -> Iterator[Row]:
    for amplification in report.amplification.value:
        yield {
            "target": amplification.target,
            "requests": amplification.requests,
            "attempts": amplification.attempts,
            "factor": amplification.factor,
            "met_factor": amplification.faulted_factor,
            "most": amplification.most,
            "where": amplification.where,
            "layers": ", ".join(f"{n} by {layer}" for layer, n in amplification.layers.items()) or None,
        }


def _fault_cost_rows(report: RunReport) -> Iterator[Row]:
    """The amounts that each fault added, then the rows that make the sum whole."""
    costs, usage = report.costs.value, None if report.usage.unknown else report.usage.value
    unknown: tuple[str, ...] = ()
    if not report.knows_usage or report.usage.unknown:
        unknown = ("tokens", "usd")
    elif usage is not None and usage.cost_usd is None:
        unknown = ("usd",)
    if costs is None:
        return
    other_rows = {
        "the same trials without faults": costs.matched, "trials that met no fault": costs.no_fault,
        "no comparison": costs.no_comparison, "outside of trials": costs.outside, ALL: costs.total,
    }  # fmt: skip
    for added, rows in ((True, {**costs.by_fault, "several faults at once": costs.shared}), (False, other_rows)):
        for name, spending in rows.items():
            # A row that holds nothing is left out, and the rest still adds up.
            if spending != Spending():
                known_amounts = {
                    key: float(value)
                    for key, value in vars(spending).items()
                    if value is not None and key not in unknown
                }
                yield {**known_amounts, "fault": name, "added": added, "trials": spending.trials or None}


def _fault_delivery_rows(report: RunReport) -> Iterator[Row]:
    """First what is not as planned, then what was witnessed most often; faults after their injection."""
    by_fault = defaultdict[str, dict[str, list[FaultCount]]](dict)
    for fault_count in report.delivered.value.by_fault:
        by_fault[fault_count.injection].setdefault(fault_count.fault, []).append(fault_count)
    for injection_count in sorted(
        report.delivered.value.by_injection,
        # `is not False`: what cannot be checked comes with what is as planned.
        key=lambda injection_count: (injection_count.plausible is not False, -injection_count.witnessed),
    ):
        faults = by_fault[injection_count.injection]
        yield {**vars(injection_count), "fault": next(iter(faults)) if len(faults) == 1 else ALL}
        # The injection's own row says all where it has one fault.
        for fault, stages in faults.items() if len(faults) > 1 else ():
            sums = {stage: sum(getattr(fault_count, stage) for fault_count in stages) for stage in STAGES}
            yield {"injection": injection_count.injection, "fault": fault, **sums}


def _unmet_fault_rows(report: RunReport) -> Iterator[Row]:
    for reason_count in report.not_met.value.reasons:
        yield {"fault": reason_count.fault, "number": reason_count.count, "why": reason_count.why}


def _uninjected_failure_rows(report: RunReport) -> Iterator[Row]:
    for failure in report.uninjected.value:
        # An error may hold a whole page of HTML.
        error = make_one_line("; ".join(filter(None, (failure.error[:SAID], failure.earlier_faults_text))), 2 * SAID)
        yield {"target": make_one_line(failure.target, SAID), "number": failure.count, "error": error}


def _warning_rows(report: RunReport) -> Iterator[Row]:
    warned = Counter((make_one_line(writer, SAID), make_one_line(text, SAID)) for writer, text in report.warnings.value)
    for (writer, text), number in warned.most_common():
        yield {"writer": writer, "number": number, "warning": text}


def _reliability_rows(report: RunReport) -> Iterator[Row]:
    if (reliability := report.reliability.value) is not None:
        for budget in reliability.budgets:
            yield {
                "objective": budget.objective,
                "judged": reliability.available.total,
                "well": reliability.available.count,
                "allowed": budget.allowed,
                "failed": budget.failed,
                "budget_left": budget.left,
                "burn_rate": budget.burn,
                "kept": budget.kept,
            }


ROWS: Mapping[str, Callable[[RunReport], Iterable[Row]]] = {
    "outcomes": _outcome_rows,
    "impact": _impact_rows,
    "mttr": _mttr_rows,
    "latency": _latency_rows,
    "amplification": _amplification_rows,
    "costs": _fault_cost_rows,
    "delivery": _fault_delivery_rows,
    "unmet": _unmet_fault_rows,
    "failures": _uninjected_failure_rows,
    "warnings": _warning_rows,
    "reliability": _reliability_rows,
}
"""Table → its rows."""
