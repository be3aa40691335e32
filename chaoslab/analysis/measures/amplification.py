"""Retry amplification: the requests that a target gets for each one that was wanted.

A request is wanted once; each further attempt at it is a retry, whichever layer makes it: the SDK, the tool or the
agent. A factor of 27 is three layers that try three times each.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

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


def amplification(history: History) -> list[Amplification]:
    """The figures of each target that was called, the most amplified first."""
    sent: dict[str, Counter[tuple[str, int]]] = {}
    for record, event in history.of(CallStarted):
        sent.setdefault(event.target, Counter())[record.trial or "", event.request] += 1
    met = {(event.target, record.trial or "", event.request) for record, event in history.of(FaultWitnessed)}
    found = []
    for target, requests in sent.items():
        (trial, request), most = max(requests.items(), key=lambda item: item[1])
        hit = [attempts for (which, number), attempts in requests.items() if (target, which, number) in met]
        found.append(
            Amplification(
                target, len(requests), requests.total(), most, f"{trial} {target} {request}", len(hit), sum(hit)
            )
        )  # fmt: skip
    return sorted(found, key=lambda each: (-each.factor, each.target))
