"""The measures over one whole history, for stories that are not worth a report."""

from collections import Counter
from typing import Any, TypeVar

from chaoslab.analysis.measures._amplification import Amplification, RequestCounts
from chaoslab.analysis.measures._calls import CallCount, EndTimes, Spent, Throughput, UsageTotals
from chaoslab.analysis.measures._findings import Measure
from chaoslab.analysis.measures.errors import find_failures_with_causes
from chaoslab.analysis.measures.faults import (
    FaultStages,
    InjectionCount,
    UnexplainedFailure,
    UninjectedFailures,
    Unmet,
    UnwitnessedFaults,
)
from chaoslab.analysis.measures.latency import AttemptDurations
from chaoslab.record.history import History

M = TypeVar("M", bound=Measure)


def taken(measure: M, history: History, *more: Any) -> M:
    measure.add_history(history, *more)
    return measure


def calls(history: History) -> CallCount:
    return taken(CallCount(), history)


def throughput(history: History) -> Throughput | None:
    return taken(EndTimes(), history).compute_throughput()


def usage(history: History) -> Spent | None:
    return taken(UsageTotals(), history).compute_totals()


def amplification(history: History) -> list[Amplification]:
    return taken(RequestCounts(), history).list_amplifications()


def errors(history: History) -> dict[str, Counter[str]]:
    """By target and kind of failure, the number of each cause."""
    by_kind: dict[str, Counter[str]] = {}
    for at, kind, cause in find_failures_with_causes(history):
        by_kind.setdefault(f"{at[1]} {kind}", Counter())[cause] += 1
    return by_kind


def by_injection(history: History) -> list[InjectionCount]:
    return taken(FaultStages(), history).count_by_injection()


def unmet(history: History) -> list[Unmet]:
    return taken(UnwitnessedFaults(), history).list_reasons()


def uninjected(history: History) -> list[UnexplainedFailure]:
    return taken(UninjectedFailures(), history).list_failures()


def attempts(history: History) -> AttemptDurations:
    return taken(AttemptDurations(), history).sort_targets()
