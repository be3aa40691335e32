"""The number of attempts, and of those that failed."""

from __future__ import annotations

from dataclasses import dataclass

from chaoslab.core.events import CallFinished, CallStarted, Fallback, Retry
from chaoslab.record.history import History


@dataclass(frozen=True)
class Calls:
    """Counts of attempts: `made` in all, `to_model`, `failed`, and `again` for all but the first of a request.
    `retries`, `fallbacks`: as the lab's agent recorded them."""

    made: int
    to_model: int
    failed: int
    again: int
    retries: int
    fallbacks: int


def calls(history: History) -> Calls:
    """The counts over a run."""
    made = {(r.trial, e.target, e.request, e.attempt) for r, e in history.of(CallStarted)}
    made |= {(r.trial, e.target, e.request, e.attempt) for r, e in history.of(CallFinished)}
    retries, fallbacks = (sum(1 for _ in history.of(kind)) for kind in (Retry, Fallback))
    return Calls(
        made=len(made),
        to_model=sum(target == "model" for _, target, _, _ in made),
        failed=sum(not e.ok for _, e in history.of(CallFinished)),
        again=sum(attempt > 1 for _, _, _, attempt in made),
        retries=retries,
        fallbacks=fallbacks,
    )
