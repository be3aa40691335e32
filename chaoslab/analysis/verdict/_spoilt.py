"""Reasons why a trial allows no conclusion: a fault that nobody met, or the lab itself in the way."""

from collections.abc import Iterable
from operator import attrgetter
from typing import Any

from chaoslab.analysis.verdict import traits
from chaoslab.analysis.verdict.ledger import Finding, FindingKind
from chaoslab.analysis.verdict.seen import TrialEvents, line
from chaoslab.core import events
from chaoslab.record.history import History
from chaoslab.record.lines import Record

_at = attrgetter("turn", "target", "request", "attempt", "request_id")
"""The fields by which two attempts of a trial are the same: those that an `AttemptRef` is compared by."""
_whose = attrgetter("injection", "turn", "target", "request", "attempt", "request_id")
"""The same, and the injection."""


def disturbed(seen: TrialEvents) -> Finding | None:
    """A call that was hit by something that nobody injected."""
    for record, event in seen.of(events.CallDisturbed):
        text = f"{event.target} {event.request}.{event.attempt} was hit by what nobody injected: {event.why}"
        return Finding(FindingKind.DISTURBED, text, (line(record),))
    return None


def failed_in_outages(history: History, trial: str) -> set[events.AttemptRef]:
    """The attempts that failed since the process of their service was stopped: no fault of a lane can show on them."""
    return _in_outages(history.of(events.FaultWitnessed, trial=trial), history.of(events.CallFinished, trial=trial))


def _in_outages(
    met: Iterable[tuple[Record, events.FaultWitnessed]], calls: Iterable[tuple[Record, events.CallFinished]]
) -> set[events.AttemptRef]:
    struck = {event.at for _, event in met if traits.of_process(event.fault)}
    return {event.at for _, event in calls if not event.ok and event.at in struck} if struck else struck


def armed_in_vain(seen: TrialEvents) -> Finding | None:
    """A fault that was armed, and that no caller met."""
    if not seen.of(events.FaultArmed):
        return None

    def where(event: events.FaultArmed | events.FaultWitnessed | events.FaultHealed) -> tuple[str, str, str, int, int]:
        return event.fault, event.injection, event.target, event.request, event.attempt

    met = {where(event) for _, event in seen.of(events.FaultWitnessed)}
    met |= {where(event) for _, event in seen.of(events.FaultHealed) if event.masked_by or event.idle}
    missed = [pair for pair in seen.of(events.FaultArmed) if where(pair[1]) not in met]
    struck = _in_outages(seen.of(events.FaultWitnessed), seen.of(events.CallFinished)) if missed else set()
    ended = _Ends(seen) if missed else None
    for record, event in missed:
        if event.at in struck or (ended is not None and ended.goes_on(event)):
            continue
        text = f"{event.fault} was armed on {event.target} {event.request}.{event.attempt} and not witnessed"
        return Finding(FindingKind.NOT_MET, text, (line(record),))
    return None


def unseen(seen: TrialEvents) -> Finding | None:
    """A fault that was injected into a call, and that its caller did not meet: it was gone before, or saw nothing of
    it. A call that met another fault shows no more than that one, if it ended, or if that one held it to its end. A
    call that goes on has not missed its fault."""
    if not seen.of(events.FaultInjected):
        return None
    owners = [_whose(event) for _, event in seen.of(events.FaultWitnessed)]
    if owners == [_whose(event) for _, event in seen.of(events.FaultInjected)]:
        return None  # most trials: each was witnessed, one after the other
    own = set(owners)
    explained = own | {_whose(event) for _, event in seen.of(events.FaultHealed) if event.masked_by}
    missed = [pair for pair in seen.of(events.FaultInjected) if _whose(pair[1]) not in explained]
    if not missed:
        return None
    ended = _Ends(seen)
    met = {at[1:] for at in own}
    for record, event in missed:
        end = ended.of(event)
        if end is None or ended.goes_on(event):
            continue
        gone = end.cancelled
        if gone or _at(event) not in met:
            where = f"{event.target} {event.request}.{event.attempt}"
            why = "the call was over before its caller met it" if gone else "its caller saw nothing of it"
            return Finding(FindingKind.NOT_MET, f"{event.fault} was injected on {where}, and {why}", (line(record),))
    return None


class _Ends:
    """The ends of a trial's calls."""

    def __init__(self, seen: TrialEvents) -> None:
        self._ended = {_at(event): event for _, event in seen.calls()}
        self._attempts: dict[tuple[Any, ...], int] = {}
        """The last attempt of each request."""
        for at in self._ended:
            self._attempts[at[:3]] = max(at[3], self._attempts.get(at[:3], 0))

    def of(self, fault: events.FaultInjected | events.FaultArmed) -> events.CallFinished | None:
        return self._ended.get(_at(fault))

    def goes_on(self, fault: events.FaultInjected | events.FaultArmed) -> bool:
        """True if the call was open at the trial's end, or if its caller gave up a call that the fault held back and
        asked again: then the fault has acted, whatever the first call would have shown."""
        at, end = _at(fault), self.of(fault)
        if end is not None and end.error == events.OPEN:
            return True
        if end is not None and end.cancelled and traits.delays(fault.fault):
            return bool(self._attempts[at[:3]] > at[3])
        return False


def unreached(seen: TrialEvents) -> Finding | None:
    """A fault for a numbered request that never came up, or was held back."""
    held = {(event.injection, event.target, event.request): event.limit for _, event in seen.of(events.FaultHeldBack)}
    for record, event in seen.of(events.FaultUnreached):
        never = event.request > event.made
        why = f"and there were {event.made}" if never else "which another fault took first"
        if limit := held.get((event.injection, event.target, event.request)):
            why = f"where it was held back: {limit}"
        text = f"'{event.injection}' is for request {event.request} of {event.target}, {why}"
        return Finding(FindingKind.NOT_MET, text, (line(record),))
    return None
