"""Reasons why a trial allows no conclusion: a fault that nobody met, or the lab itself in the way."""

from collections.abc import Iterable
from operator import attrgetter
from typing import Any

from chaoslab.analysis.verdict import traits
from chaoslab.analysis.verdict.ledger import Finding, FindingKind
from chaoslab.analysis.verdict.seen import TrialEvents, log_line_key
from chaoslab.core import events
from chaoslab.record.history import History
from chaoslab.record.lines import Record

_attempt_key = attrgetter("turn", "target", "request", "attempt", "request_id")
"""The fields by which two attempts of a trial are the same: those that an `AttemptRef` is compared by."""
_injection_key = attrgetter("injection", "turn", "target", "request", "attempt", "request_id")
"""The same, and the injection."""


def find_disturbed_call(trial_events: TrialEvents) -> Finding | None:
    """A call that was hit by something that nobody injected."""
    for record, event in trial_events.find_events(events.CallDisturbed):
        text = f"{event.target} {event.request}.{event.attempt} was hit by what nobody injected: {event.why}"
        return Finding(FindingKind.DISTURBED, text, (log_line_key(record),))
    return None


def find_outage_failures(history: History, trial: str) -> set[events.AttemptRef]:
    """The attempts that failed since the process of their service was stopped: no fault of a lane can show on them."""
    return _find_failed_attempts_in_outages(
        history.find_events(events.FaultWitnessed, trial=trial), history.find_events(events.CallFinished, trial=trial)
    )


def _find_failed_attempts_in_outages(
    witnessed: Iterable[tuple[Record, events.FaultWitnessed]], calls: Iterable[tuple[Record, events.CallFinished]]
) -> set[events.AttemptRef]:
    attempts = {event.at for _, event in witnessed if traits.begins_outage(event.fault)}
    return {event.at for _, event in calls if not event.ok and event.at in attempts} if attempts else attempts


def find_unmet_armed_fault(trial_events: TrialEvents) -> Finding | None:
    """A fault that was armed, and that no caller met."""
    if not trial_events.find_events(events.FaultArmed):
        return None

    def fault_key(
        event: events.FaultArmed | events.FaultWitnessed | events.FaultHealed,
    ) -> tuple[str, str, str, int, int]:
        return event.fault, event.injection, event.target, event.request, event.attempt

    explained = {fault_key(event) for _, event in trial_events.find_events(events.FaultWitnessed)}
    explained |= {
        fault_key(event) for _, event in trial_events.find_events(events.FaultHealed) if event.masked_by or event.idle
    }
    missed = [pair for pair in trial_events.find_events(events.FaultArmed) if fault_key(pair[1]) not in explained]
    in_outages = (
        _find_failed_attempts_in_outages(
            trial_events.find_events(events.FaultWitnessed), trial_events.find_events(events.CallFinished)
        )
        if missed
        else set()
    )
    ends = _CallEnds(trial_events) if missed else None
    for record, event in missed:
        if event.at in in_outages or (ends is not None and ends.is_call_still_open(event)):
            continue
        text = f"{event.fault} was armed on {event.target} {event.request}.{event.attempt} and not witnessed"
        return Finding(FindingKind.NOT_MET, text, (log_line_key(record),))
    return None


def find_unseen_fault(trial_events: TrialEvents) -> Finding | None:
    """A fault that was injected into a call, and that its caller did not meet: it was gone before, or saw nothing of
    it. A call that met another fault shows no more than that one, if it ended, or if that one held it to its end. A
    call that goes on has not missed its fault."""
    if not trial_events.find_events(events.FaultInjected):
        return None
    owners = [_injection_key(event) for _, event in trial_events.find_events(events.FaultWitnessed)]
    if owners == [_injection_key(event) for _, event in trial_events.find_events(events.FaultInjected)]:
        return None  # most trials: each was witnessed, one after the other
    witnessed = set(owners)
    explained = witnessed | {
        _injection_key(event) for _, event in trial_events.find_events(events.FaultHealed) if event.masked_by
    }
    missed = [
        pair for pair in trial_events.find_events(events.FaultInjected) if _injection_key(pair[1]) not in explained
    ]
    if not missed:
        return None
    ends = _CallEnds(trial_events)
    faulted_attempts = {at[1:] for at in witnessed}
    for record, event in missed:
        end = ends.find_call_end(event)
        if end is None or ends.is_call_still_open(event):
            continue
        was_cancelled = end.is_cancelled
        if was_cancelled or _attempt_key(event) not in faulted_attempts:
            label = f"{event.target} {event.request}.{event.attempt}"
            reason = "the call was over before its caller met it" if was_cancelled else "its caller saw nothing of it"
            return Finding(
                FindingKind.NOT_MET, f"{event.fault} was injected on {label}, and {reason}", (log_line_key(record),)
            )
    return None


class _CallEnds:
    """The ends of a trial's calls."""

    def __init__(self, trial_events: TrialEvents) -> None:
        self._ended = {_attempt_key(event): event for _, event in trial_events.list_call_ends()}
        self._attempts: dict[tuple[Any, ...], int] = {}
        """The last attempt of each request."""
        for at in self._ended:
            self._attempts[at[:3]] = max(at[3], self._attempts.get(at[:3], 0))

    def find_call_end(self, fault: events.FaultInjected | events.FaultArmed) -> events.CallFinished | None:
        return self._ended.get(_attempt_key(fault))

    def is_call_still_open(self, fault: events.FaultInjected | events.FaultArmed) -> bool:
        """True if the call was open at the trial's end, or if its caller gave up a call that the fault held back and
        asked again: then the fault has acted, whatever the first call would have shown."""
        at, end = _attempt_key(fault), self.find_call_end(fault)
        if end is not None and end.error == events.OPEN:
            return True
        if end is not None and end.is_cancelled and traits.can_delay(fault.fault):
            return bool(self._attempts[at[:3]] > at[3])
        return False


def find_fault_of_unreached_request(trial_events: TrialEvents) -> Finding | None:
    """A fault for a numbered request that never came up, or was held back."""
    holds = {
        (event.injection, event.target, event.request): event.limit
        for _, event in trial_events.find_events(events.FaultHeldBack)
    }
    for record, event in trial_events.find_events(events.FaultUnreached):
        was_not_made = event.request > event.made
        reason = f"and there were {event.made}" if was_not_made else "which another fault took first"
        if limit := holds.get((event.injection, event.target, event.request)):
            reason = f"where it was held back: {limit}"
        text = f"'{event.injection}' is for request {event.request} of {event.target}, {reason}"
        return Finding(FindingKind.NOT_MET, text, (log_line_key(record),))
    return None
