"""The figures of a run as plain values with their units in the names: for JSON, tables and Python."""

from collections.abc import Mapping
from typing import Any

from chaoslab.analysis.measures.cost import Spending
from chaoslab.analysis.measures.intervals import Estimate, Interval, Rate
from chaoslab.analysis.measures.mttr import Recovery
from chaoslab.analysis.measures.run_report import RunReport


def figures(report: RunReport) -> dict[str, Any]:
    """The figures by measure; None where the log cannot tell or has no data."""
    return {
        "reliability": reliability(report),
        "recovery": None if report.recovery.unknown else {
            **recovery(report.recovery.value.overall),
            "by_fault": {fault: recovery(of) for fault, of in report.recovery.value.by_fault.items()},
        },
        "amplification": None if report.amplification.unknown else amplification(report),
        "usage": _usage(report),
        "cost_of_chaos": _costs(report),
    }  # fmt: skip


def reliability(report: RunReport) -> dict[str, Any] | None:
    """The reliability of a run, its nines and error budgets; None if nothing could be judged. `objective`: the share of
    trials that should end well. `burn_rate`: above 1 the objective is missed. `mtbf_s`: in seconds of the trials."""
    found = report.reliability.value
    if found is None:
        return None
    return {
        "available": _rate(found.available), "handled": _rate(found.handled), "proven": found.proven,
        "nines": found.nines, "next_nine_needs_trials": found.next_needs, "mtbf_s": found.mtbf_s,
        "mtbf_least_s": found.mtbf_least_s, "score": found.score, "parts": dict(found.parts),
        "error_budgets": [
            {
                "objective": one.objective, "allowed": one.allowed, "failed": one.failed, "left": one.left,
                "burn_rate": one.burn,
            }
            for one in found.budgets
        ],
    }  # fmt: skip


def amplification(report: RunReport) -> list[dict[str, Any]]:
    """The requests to each target, and the attempts at them."""
    return [
        {
            "target": one.target, "requests": one.requests, "attempts": one.attempts, "factor": one.factor,
            "met_factor": one.met_factor, "most": one.most, "where": one.where,
        }
        for one in report.amplification.value
    ]  # fmt: skip


def recovery(of: Recovery) -> dict[str, Any]:
    """The recovery of some incidents, in seconds: `mttr_s` is `detect_s` and `repair_s` together, in the mean of those
    that recovered; those that were late and right have nothing to detect."""
    return {
        "incidents": of.n, "recovered": of.recovered, "by_retry": of.retry, "by_fallback": of.fallback,
        "late": of.late, "with_harm": of.harmed, "never": of.never, "censored": of.censored, "mttr_s": of.mean_s,
        "mttr_interval_s": _interval(of.mean_interval), "detect_s": of.detected_s, "repair_s": of.since_notice_s,
        "median_s": _estimate(of.median), "restricted_mean_s": _estimate(of.restricted_mean),
        "horizon_s": of.horizon_s,
    }  # fmt: skip


def _usage(report: RunReport) -> dict[str, Any] | None:
    spent = report.usage.value if report.knows_usage else None
    return None if spent is None else dict(vars(spent))


def _costs(report: RunReport) -> dict[str, Any] | None:
    found = report.costs.value
    if found is None:
        return None
    rows: Mapping[str, Spending] = {
        "shared": found.shared, "matched": found.matched, "no_fault": found.no_fault,
        "no_comparison": found.no_comparison, "outside": found.outside, "total": found.total,
    }  # fmt: skip
    return {
        "by_fault": {fault: _spending(of) for fault, of in found.by_fault.items()},
        **{name: _spending(of) for name, of in rows.items()},
    }


def _spending(of: Spending) -> dict[str, float | None]:
    return {name: value if value is None else float(value) for name, value in vars(of).items()}


def _rate(of: Rate | None) -> dict[str, float] | None:
    return None if of is None else {"count": of.count, "total": of.total, **_ends(of.interval)}


def _interval(of: Interval | None) -> dict[str, float | None] | None:
    return None if of is None else _ends(of)


def _estimate(of: Estimate | None) -> dict[str, float | None] | None:
    return None if of is None else {"value": of.value, **_ends(of.interval)}


def _ends(of: Interval) -> dict[str, Any]:
    """The ends of an interval; None is an end that the data do not give."""
    return {"low": of.low, "high": None if of.high == float("inf") else of.high}
