"""The rows of a run's measures. JSON, tables of Python and reports for people have the same."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from chaoslab.analysis.measures import recovery_quality, reliability
from chaoslab.analysis.measures.cost import Spending
from chaoslab.analysis.measures.faults import STAGES, FaultCount
from chaoslab.analysis.measures.impact import Impact
from chaoslab.analysis.measures.latency import latency
from chaoslab.analysis.measures.mttr import Recovery
from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.analysis.verdict.table import Outcome
from chaoslab.reports.contents._table import ALL, SAID, Row, finite
from chaoslab.reports.text import one_line

T_ = TypeVar("T_")
Place = tuple[str, str]


def each_place(by_fault: Mapping[str, T_], by_place: Mapping[Place, T_]) -> Iterator[tuple[Place, T_]]:
    """Each fault over all its targets, if there are several, and then at each of them, in the orders that they have."""
    for fault, every in by_fault.items():
        mine = [(place, of) for place, of in by_place.items() if place[0] == fault]
        if len(mine) != 1:
            yield (fault, ALL), every
        yield from mine


def _outcomes(report: RunReport) -> Iterator[Row]:
    found = report.success.value.by_outcome
    for name in Outcome:
        if of := found.get(name):
            yield {"outcome": str(name), "trials": of.count, "share": of.value, **vars(of.interval)}


def _impact(report: RunReport) -> Iterator[Row]:
    """Worst first: by harm, then by bad ends, then by the time that was lost."""

    def worst(named: tuple[Any, Impact]) -> tuple[int, int, float]:
        of = named[1]
        return -of.outcomes.get(Outcome.HARM, 0), -of.bad.count if of.bad else 0, -(of.lost_s or 0.0)

    by_fault, by_target = report.impacts.value.by_fault, report.impacts.value.by_target
    both = dict(sorted(by_fault.items(), key=worst)), dict(sorted(by_target.items(), key=worst))
    for (fault, target), of in each_place(*both):
        told = ", ".join(f"{n} {name}" for name in Outcome if (n := of.outcomes.get(name)))
        rate = {} if of.bad is None else {"bad": of.bad.count, "judged": of.bad.total, **vars(of.bad.interval)}
        yield {
            "fault": fault, "target": target, "trials": of.trials, **rate,
            "without": None if of.without is None else of.without.value, "more_s": of.lost_s,
            "more_calls": of.lost_calls, "outcomes": told,
        }  # fmt: skip


def _mttr(report: RunReport) -> Iterator[Row]:
    """Worst first: by harm, then by those that never recovered, then by the mean."""

    def worst(named: tuple[Any, Recovery]) -> tuple[int, int, float]:
        of = named[1]
        return -of.harmed, -of.never, -(of.mean_s or 0.0)

    found = report.recovery.value
    places = {(fault, target): of for (target, fault), of in sorted(found.by_target.items(), key=worst)}
    for (fault, target), of in each_place(dict(sorted(found.by_fault.items(), key=worst)), places):
        yield {"fault": fault, "target": target, **recovery(of)}


def recovery(of: Recovery) -> dict[str, Any]:
    """The recovery of some incidents: `mttr_s` is `detect_s` and `repair_s` together, in the mean of those that
    recovered; those that were late and right have nothing to detect."""
    mean, median = of.mean_interval, of.median
    ends = median and median.interval
    return {
        "incidents": of.n, "recovered": of.recovered, "by_retry": of.retry, "by_fallback": of.fallback,
        "late": of.late, "with_harm": of.harmed, "never": of.never, "censored": of.censored, "mttr_s": of.mean_s,
        "mttr_low_s": mean and mean.low, "mttr_high_s": mean and mean.high, "detect_s": of.detected_s,
        "repair_s": of.since_notice_s, "median_s": median and median.value, "median_low_s": ends and ends.low,
        "median_high_s": ends and finite(ends.high),
    }  # fmt: skip


def _latency(report: RunReport) -> Iterator[Row]:
    for target, of in sorted(report.attempts.value.by_target.items()):
        for met, durations in zip((False, True), of.both, strict=True):
            if found := latency(durations):
                yield {
                    "target": target, "met": met, "attempts": found.n, "p50_s": found.p50_s, "p90_s": found.p90_s,
                    "p99_s": found.p99_s, "longest_s": found.longest_s,
                }  # fmt: skip


def _amplification(report: RunReport) -> Iterator[Row]:
    for one in report.amplification.value:
        yield {
            "target": one.target, "requests": one.requests, "attempts": one.attempts, "factor": one.factor,
            "met_factor": one.met_factor, "most": one.most, "where": one.where,
            "layers": ", ".join(f"{n} by {layer}" for layer, n in one.layers.items()) or None,
        }  # fmt: skip


def _costs(report: RunReport) -> Iterator[Row]:
    """The amounts that each fault added, then the rows that make the sum whole."""
    found, usage = report.costs.value, None if report.usage.unknown else report.usage.value
    unknown: tuple[str, ...] = ()
    if not report.knows_usage or report.usage.unknown:
        unknown = ("tokens", "usd")
    elif usage is not None and usage.cost_usd is None:
        unknown = ("usd",)
    if found is None:
        return
    others = {
        "the same trials without faults": found.matched, "trials that met no fault": found.no_fault,
        "no comparison": found.no_comparison, "outside of trials": found.outside, ALL: found.total,
    }  # fmt: skip
    for added, rows in ((True, {**found.by_fault, "several faults at once": found.shared}), (False, others)):
        for name, of in rows.items():
            if of != Spending():
                known = {
                    key: float(value) for key, value in vars(of).items() if value is not None and key not in unknown
                }
                yield {**known, "fault": name, "added": added, "trials": of.trials or None}


def _delivery(report: RunReport) -> Iterator[Row]:
    """First what is not as planned, then what was witnessed most often; faults after their injection."""
    by_fault = defaultdict[str, dict[str, list[FaultCount]]](dict)
    for each in report.delivered.value.by_fault:
        by_fault[each.injection].setdefault(each.fault, []).append(each)
    for one in sorted(
        report.delivered.value.by_injection, key=lambda one: (one.plausible is not False, -one.witnessed)
    ):
        faults = by_fault[one.injection]
        yield {**vars(one), "fault": next(iter(faults)) if len(faults) == 1 else ALL}
        for fault, stages in faults.items() if len(faults) > 1 else ():
            sums = {stage: sum(getattr(each, stage) for each in stages) for stage in STAGES}
            yield {"injection": one.injection, "fault": fault, **sums}


def _unmet(report: RunReport) -> Iterator[Row]:
    for each in report.not_met.value.reasons:
        yield {"fault": each.fault, "number": each.count, "why": each.why}


def _failures(report: RunReport) -> Iterator[Row]:
    for each in report.uninjected.value:
        error = one_line("; ".join(filter(None, (each.error[:SAID], each.before))), 2 * SAID)
        yield {"target": one_line(each.target, SAID), "number": each.count, "error": error}


def _warnings(report: RunReport) -> Iterator[Row]:
    warned = Counter((one_line(who, SAID), one_line(text, SAID)) for who, text in report.warnings.value)
    for (who, text), number in warned.most_common():
        yield {"writer": who, "number": number, "warning": text}


def _reliability(report: RunReport) -> Iterator[Row]:
    if (found := report.reliability.value) is not None:
        for one in found.budgets:
            yield {
                "objective": one.objective, "judged": found.available.total, "well": found.available.count,
                "allowed": one.allowed, "failed": one.failed, "budget_left": one.left, "burn_rate": one.burn,
                "kept": one.kept,
            }  # fmt: skip


def _parts(found: Any, weights: Mapping[str, float]) -> Iterator[Row]:
    for name, value in found.parts.items() if found is not None else ():
        yield {"part": name, "weight": weights[name], "value": value}


ROWS: Mapping[str, Callable[[RunReport], Iterable[Row]]] = {
    "outcomes": _outcomes, "impact": _impact, "mttr": _mttr, "latency": _latency, "amplification": _amplification,
    "costs": _costs, "delivery": _delivery, "unmet": _unmet, "failures": _failures, "warnings": _warnings,
    "reliability": _reliability,
    "score": lambda report: _parts(report.reliability.value, reliability.WEIGHTS),
    "quality": lambda report: _parts(report.recovery_quality.value, recovery_quality.WEIGHTS),
}  # fmt: skip
"""Table → its rows."""
