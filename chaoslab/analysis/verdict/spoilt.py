"""Reasons why a trial allows no conclusion: a fault that nobody met, the lab itself in the way, or replies that only a
script was given, which says the same whatever it is sent."""

from collections.abc import Iterable, Sequence, Set
from itertools import takewhile
from operator import attrgetter
from typing import Any

from chaoslab.analysis.verdict import traits
from chaoslab.analysis.verdict.ledger import Finding, FindingKind
from chaoslab.analysis.verdict.seen import TrialEvents, line
from chaoslab.base import jsonable
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


def unread(story: Iterable[events.Event]) -> str:
    """The reason why a trial shows nothing about the agent's way with its faults, in one line; empty if it may show
    something. `story`: the events of the trial, in time order.

    It is given if nobody but a scripted model can have read what each fault left: the agent's own code asked for
    nothing more after it than the script wanted, only scripted models answered from then on, and each answer of the
    agent's is a text of the script's. A right reply that was only late leaves nothing that a model would read.
    """
    met: list[events.FaultWitnessed] = []
    calls: list[events.CallFinished] = []
    told: list[tuple[int, str]] = []
    for event in story:
        match event:
            case events.FaultWitnessed():
                met.append(event)
            case events.CallFinished():
                calls.append(event)
            case events.TurnFinished():
                told.append((len(calls), event.answer))
            case events.PromptFinished() if not told:
                told.append((len(calls), event.answer))
    places = {call.at: place for place, call in enumerate(calls)}
    well = {call.at for call in calls if call.ok}
    met = [event for event in met if event.at not in well or traits.corrupts(event.fault)]
    first = min((places.get(event.at, -1) for event in met), default=-1)
    models = {call.target for call in calls if call.finish_reason is not None}
    if first < 0 or not all(_went_to_a_script(event.fault, calls, places[event.at], models) for event in met):
        return ""
    said = {call.reply for call in calls[first:] if _of_script(call)}
    if not all(jsonable.line(answer, events.REPLY_MAX) in said for place, answer in told if place > first):
        return ""
    faults = ", ".join(dict.fromkeys(f"{event.fault} on {event.target}" for event in met))
    scripts = ", ".join(dict.fromkeys(call.target for call in calls if _of_script(call)))
    return (
        f"only a script was given what came of {faults}: {scripts} says the same whatever it is sent, so this shows "
        "nothing of what the agent makes of it"
    )


def _went_to_a_script(fault: str, calls: Sequence[events.CallFinished], place: int, models: Set[str]) -> bool:
    """True if nobody but scripted models can have read what the fault left at the call at this place."""
    call, after = calls[place], calls[place + 1 :]
    if call.target in models:  # a script does not read what it is asked; what it answers, the agent reads
        if not _of_script(call) or traits.corrupts(fault) != "call":
            return False
    else:
        wanted = next((each.reply for each in reversed(calls[:place]) if each.target in models), "")
        beside = takewhile(lambda each: each.target not in models, after)
        if any(_repeats(call, each) or f"{each.tool}(" not in wanted for each in beside):
            return False
        if all(each.target not in models for each in after):
            return False
    return all(_of_script(each) for each in after if each.target in models)


def _of_script(call: events.CallFinished) -> bool:
    return call.said_by is not None


def _repeats(call: events.CallFinished, other: events.CallFinished) -> bool:
    return (call.target, call.request) == (other.target, other.request)
