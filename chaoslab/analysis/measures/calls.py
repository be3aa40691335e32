"""The number of attempts, of those that failed, and of those that were given up."""

from __future__ import annotations

from dataclasses import dataclass

from chaoslab.core.events import Fallback
from chaoslab.record.history import History, Place


@dataclass(frozen=True)
class Calls:
    """Counts of attempts: `made` in all, `to_model`, `failed`, `given_up`, `retries`, and `fallbacks`: those that the
    lab's agent made around the proxy."""

    made: int
    to_model: int
    failed: int
    given_up: int
    retries: int
    fallbacks: int


@dataclass
class CallCount:
    """Counts the attempts of batches."""

    made: int = 0
    to_model: int = 0
    failed: int = 0
    given_up: int = 0
    retries: int = 0
    fallbacks: int = 0

    def take(self, history: History) -> None:
        self.made += len(history.made)
        self.to_model += sum([target == "model" for _, target, _, _ in history.made])
        gone = len(history.given_up)
        self.given_up += gone
        self.failed += sum([not event.ok for _, event, _ in history.failed]) - gone
        self.retries += len(retries(history))
        self.fallbacks += sum(1 for _ in history.of(Fallback))

    def result(self) -> Calls:
        return Calls(self.made, self.to_model, self.failed, self.given_up, self.retries, self.fallbacks)


def retries(history: History) -> list[Place]:
    """The attempts at a request after its first, by the SDK, the tool, the agent or a new plan; without fallbacks, and
    without those that were given up or came after nothing else. Recovery takes the same ones for retries, and
    another request for the same thing (`incidents`)."""
    around, gone = {at for _, _, at in history.placed(Fallback)}, history.given_up
    again = [at for at in history.made if at[3] > 1 and at not in around]
    if not gone:
        return again
    first: dict[tuple[str | None, str, int], int] = {}
    for at in history.made - gone:
        first[at[:3]] = min(at[3], first.get(at[:3], at[3]))
    return [at for at in again if at not in gone and at[3] > first[at[:3]]]


def calls(history: History) -> Calls:
    """The counts over a run."""
    found = CallCount()
    found.take(history)
    return found.result()
