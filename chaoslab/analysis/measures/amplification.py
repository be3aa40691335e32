"""Retry amplification: the requests that a target gets for each one that was wanted.

A request is wanted once; each further attempt at it is a retry, whichever layer makes it: the SDK, the tool or the
agent. A factor of 27 is three layers that try three times each.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from sys import intern

from chaoslab.core.events import CallStarted, FaultWitnessed
from chaoslab.record.history import History


@dataclass(frozen=True)
class Amplification:
    """The requests to one target in the trials of a run. `requests`: those that were wanted. `attempts`: those that
    were sent. `most`: the most attempts at one of them, at `where`. `met_…`: the same of the requests that met a fault.
    """

    target: str
    requests: int
    attempts: int
    most: int
    where: str
    met_requests: int
    met_attempts: int

    @property
    def factor(self) -> float:
        """Attempts per request."""
        return self.attempts / self.requests

    @property
    def met_factor(self) -> float | None:
        """Attempts per request of those that met a fault; None if none did."""
        return self.met_attempts / self.met_requests if self.met_requests else None


@dataclass
class _Sent:
    """The requests to a target so far."""

    requests: int = 0
    attempts: int = 0
    most: int = 0
    where: str = ""
    met_requests: int = 0
    met_attempts: int = 0


@dataclass
class Sent:
    """Counts the requests of batches."""

    targets: dict[str, _Sent] = field(default_factory=dict)

    def take(self, history: History) -> None:
        met = {at[:3] for _, _, at in history.placed(FaultWitnessed)}
        for request, attempts in Counter([at[:3] for _, _, at in history.placed(CallStarted)]).items():
            trial, target, number = request
            found = self.targets.get(target)
            if found is None:
                found = self.targets[intern(target)] = _Sent()
            found.requests += 1
            found.attempts += attempts
            if attempts > found.most:
                found.most, found.where = attempts, f"{trial or ''} {target} {number}"
            if request in met:
                found.met_requests += 1
                found.met_attempts += attempts

    def result(self) -> list[Amplification]:
        found = [
            Amplification(target, s.requests, s.attempts, s.most, s.where, s.met_requests, s.met_attempts)
            for target, s in self.targets.items()
        ]
        return sorted(found, key=lambda each: (-each.factor, each.target))


def amplification(history: History) -> list[Amplification]:
    """The figures of each target that was called, the most amplified first."""
    found = Sent()
    found.take(history)
    return found.result()
