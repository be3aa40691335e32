"""Services that were dead for a reason that nobody injected, and the requests that met them so.

A service is *dead* from its first call that got no answer, or a 5xx, without a fault at that call, to its next answer,
provided that one of these calls was of a trial in which no fault had hit the service before: so it is known to fail by
itself. A fault that hit the same request first is then not known to be the reason that it never recovered.
"""

from dataclasses import dataclass, field

from chaoslab.core import events
from chaoslab.record.history import History, Place

Request = tuple[str, str, int]
"""Trial, target and the request's number."""
FAILED = 500
FUNCTION = "function"
"""The way that a call of a function of the user's goes, which has no service."""


@dataclass
class _Silence:
    """The requests that failed without a fault since a service's last answer. `sure`: one was of a trial in which no
    fault had hit the service before."""

    requests: set[Request] = field(default_factory=set)
    sure: bool = False


@dataclass
class DeadServices:
    """Collects the requests of a run, history by history in their order."""

    _over: set[Request] = field(default_factory=set)
    _silent: dict[str, _Silence] = field(default_factory=dict)

    def add_history(self, history: History) -> None:
        """Adds a part of the run."""
        faulted: dict[Place, None] = {}
        first_t: dict[tuple[str | None, str], float] = {}
        for record, fault, at in history.find_attempt_events(events.FaultWitnessed):
            faulted[at] = None
            first_t.setdefault((record.trial, fault.target), record.t)
        excluded = {at for _, _, at in history.find_attempt_events(events.CallDisturbed)} | history.given_up_attempts
        for record, call, at in history.find_attempt_events(events.CallFinished):
            trial, target = record.trial, call.target
            if trial is None or call.via == FUNCTION:
                continue
            if call.ok or (call.status is not None and call.status < FAILED):
                self._close_silent_period(target)
            # A fault, a disturbance or a caller that gave up may be the reason: it says nothing of the service.
            elif at not in faulted and at not in excluded:
                silence = self._silent.setdefault(target, _Silence())
                silence.requests.add((trial, target, call.request))
                # Where no fault hit the service, any moment is before one.
                silence.sure |= record.t < first_t.get((trial, target), record.t + 1)

    def _close_silent_period(self, target: str) -> None:
        silence = self._silent.pop(target, None)
        if silence is not None and silence.sure:
            self._over |= silence.requests

    def find_affected_requests(self) -> set[Request]:
        """The requests that met a dead service, as far as it is known by now."""
        return self._over.union(*(silence.requests for silence in self._silent.values() if silence.sure))
