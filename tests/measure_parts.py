"""The measures over one whole history, for stories that are not worth a report."""

from typing import Any, TypeVar

from chaoslab.analysis.measures._amplification import Amplification, RequestCounts
from chaoslab.analysis.measures._calls import Bill, CallCount, EndTimes, Spent, Throughput
from chaoslab.analysis.measures._findings import Measure
from chaoslab.analysis.measures.errors import ErrorCounts, FailureCounts
from chaoslab.analysis.measures.faults import (
    FaultStages,
    InjectionCount,
    NotWitnessed,
    UnexplainedFailure,
    Uninjected,
    Unmet,
)
from chaoslab.analysis.measures.latency import Attempt, list_attempts
from chaoslab.record.history import History

M = TypeVar("M", bound=Measure)


def taken(measure: M, history: History, *more: Any) -> M:
    measure.take(history, *more)
    return measure


def calls(history: History) -> CallCount:
    return taken(CallCount(), history)


def throughput(history: History) -> Throughput | None:
    return taken(EndTimes(), history).result()


def usage(history: History) -> Spent | None:
    return taken(Bill(), history).result()


def amplification(history: History) -> list[Amplification]:
    return taken(RequestCounts(), history).result()


def errors(history: History) -> ErrorCounts:
    return taken(FailureCounts(), history).result()


def by_injection(history: History) -> list[InjectionCount]:
    return taken(FaultStages(), history).by_injection()


def unmet(history: History) -> list[Unmet]:
    return taken(NotWitnessed(), history).result()


def uninjected(history: History) -> list[UnexplainedFailure]:
    return taken(Uninjected(), history).result()


def attempts(history: History) -> list[Attempt]:
    return [attempt for attempt in list_attempts(history) if attempt.timed]
