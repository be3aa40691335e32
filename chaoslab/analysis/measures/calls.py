"""The number of attempts, and of those that failed."""

from __future__ import annotations

from dataclasses import dataclass

from chaoslab.core.events import CallFinished, Fallback, Retry
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


@dataclass
class CallCount:
    """Counts the attempts of batches."""

    made: int = 0
    to_model: int = 0
    failed: int = 0
    again: int = 0
    retries: int = 0
    fallbacks: int = 0

    def take(self, history: History) -> None:
        self.made += len(history.made)
        self.to_model += sum([target == "model" for _, target, _, _ in history.made])
        self.again += sum([attempt > 1 for _, _, _, attempt in history.made])
        self.failed += sum([not event.ok for _, event in history.of(CallFinished)])
        self.retries += sum(1 for _ in history.of(Retry))
        self.fallbacks += sum(1 for _ in history.of(Fallback))

    def result(self) -> Calls:
        return Calls(self.made, self.to_model, self.failed, self.again, self.retries, self.fallbacks)


def calls(history: History) -> Calls:
    """The counts over a run."""
    found = CallCount()
    found.take(history)
    return found.result()
