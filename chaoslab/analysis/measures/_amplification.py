"""Retry amplification: the requests that a target gets for each one that was wanted.

A request is wanted once; each further attempt at it is a retry, whichever layer makes it: the SDK, the tool or the
agent. A factor of 27 is three layers that try three times each. Equal calls that begin together are each wanted, since
nobody gives a call up so soon. The layers are told apart where the log has them: the lab's tools write down their
retries and fallbacks, the lab's agent each new attempt at a prompt, and the SDKs of models count their own retries in a
header. Attempts that were given up are left out (`History.given_up_attempts`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from sys import intern

from chaoslab.core.events import CallStarted, Fallback, FaultWitnessed, PromptAttempt, Retry
from chaoslab.record.history import History, Place

Request = tuple[str | None, str, int]
"""A trial, a target and the request's number."""
TOOL, PROMPT, SDK, AGENT = "the tool", "a new attempt at the prompt", "the model's SDK", "the agent's code"
CLIENT = "the client or the agent"
"""The layers. AGENT: the code around an SDK that counts its retries and counted none. CLIENT: one that counts none,
or the code around it; nothing in the log tells these apart."""
LAYERS = (TOOL, PROMPT, SDK, AGENT, CLIENT)


@dataclass(frozen=True)
class Amplification:
    """The requests to one target in the trials of a run. `requests`: those that were wanted. `attempts`: those that
    were sent. `most`: the most attempts at one of them, at `where`. `met_…`: the same of the requests that met a fault.
    `layers`: the further attempts by the layer that made them; together `attempts` − `requests`.
    """

    target: str
    requests: int
    attempts: int
    most: int
    where: str
    met_requests: int
    met_attempts: int
    layers: Mapping[str, int]

    @property
    def factor(self) -> float:
        """Attempts per request."""
        return self.attempts / self.requests

    @property
    def faulted_factor(self) -> float | None:
        """Attempts per request of those that met a fault; None if none did."""
        return self.met_attempts / self.met_requests if self.met_requests else None


@dataclass
class _TargetCounts:
    """The requests to a target so far. `most`, `where`: as in `Amplification`."""

    requests: int = 0
    attempts: int = 0
    most: int = 0
    where: str = ""
    met_requests: int = 0
    met_attempts: int = 0
    layers: Counter[str] = field(default_factory=Counter)


@dataclass
class RequestCounts:
    """Counts the requests of batches."""

    targets: dict[str, _TargetCounts] = field(default_factory=dict)

    def add_history(self, history: History) -> None:
        faulted_requests = {at[:3] for _, _, at in history.find_attempt_events(FaultWitnessed)}
        dropped, starts = history.given_up_attempts, history.find_attempt_events(CallStarted)
        sent: Counter[Request] = Counter([at[:3] for _, _, at in starts if not dropped or at not in dropped])
        for target, requests in Counter([target for _, target, _ in sent]).items():
            if target not in self.targets:
                trial, _, number = next(request for request in sent if request[1] == target)
                self.targets[intern(target)] = _TargetCounts(most=1, where=_format_request_label(trial, target, number))
            counts = self.targets[target]
            counts.requests += requests
            counts.attempts += requests  # the further ones follow
        repeated = {request: attempts for request, attempts in sent.items() if attempts > 1}
        for (trial, target, number), attempts in repeated.items():
            counts = self.targets[target]
            counts.attempts += attempts - 1
            if attempts > counts.most:
                counts.most, counts.where = attempts, _format_request_label(trial, target, number)
        for request in faulted_requests:
            if attempts := sent[request]:
                counts = self.targets[request[1]]
                counts.met_requests += 1
                counts.met_attempts += attempts
        if repeated:
            for (_, target, _), layer in _iterate_retry_layers(history, repeated.keys(), dropped):
                self.targets[target].layers[layer] += 1

    def list_amplifications(self) -> list[Amplification]:
        amplifications = [
            Amplification(
                target,
                counts.requests,
                counts.attempts,
                counts.most,
                counts.where,
                counts.met_requests,
                counts.met_attempts,
                dict(counts.layers),
            )
            for target, counts in self.targets.items()
        ]
        return sorted(amplifications, key=lambda amplification: (-amplification.factor, amplification.target))


def _format_request_label(trial: str | None, target: str, number: int) -> str:
    return f"{trial or ''} {target} {number}"


def _iterate_retry_layers(
    history: History, repeated: Set[Request], dropped: Set[Place]
) -> Iterator[tuple[Request, str]]:
    """The layer of each further attempt at these requests."""
    retried = {at for _, _, at in history.find_attempt_events(Retry)}  # the attempt that failed
    fell_back = {at for _, _, at in history.find_attempt_events(Fallback)}  # the attempt around the proxy
    failed: dict[str | None, list[float]] = {}
    for record, ended in history.find_events(PromptAttempt):
        if ended.status != "ok":
            failed.setdefault(record.trial, []).append(record.t)
    last_attempts: dict[Request, tuple[int, float]] = {}
    for record, start, at in history.find_attempt_events(CallStarted):
        request = at[:3]
        if request not in repeated or at in dropped:
            continue
        previous, last_attempts[request] = last_attempts.get(request), (at[3], record.t)
        if previous is None:
            continue
        # What is certain first: the client's own count, then what the lab's tools noted, and last what only the time
        # suggests.
        if start.client_retry:
            yield request, SDK
        elif (*request, previous[0]) in retried or at in fell_back:
            yield request, TOOL
        elif any(previous[1] <= t <= record.t for t in failed.get(at[0], ())):
            yield request, PROMPT
        else:
            yield request, CLIENT if start.client_retry is None else AGENT
