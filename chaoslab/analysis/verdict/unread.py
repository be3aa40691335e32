"""Faults whose replies only a script was given, which says the same whatever it is sent."""

from collections.abc import Iterable, Sequence, Set
from itertools import takewhile

from chaoslab.analysis.verdict import traits
from chaoslab.base.jsonable import line
from chaoslab.core.events import (
    REPLY_MAX,
    AttemptRef,
    CallFinished,
    Event,
    FaultWitnessed,
    PromptFinished,
    TurnFinished,
)


def unread(events: Iterable[Event]) -> str:
    """The reason why a trial shows nothing about the agent's way with its faults, in one line; empty if it may show
    something. `events`: the trial's, in time order.

    It is given if nobody but a scripted model can have read what each fault left: the agent's own code asked for
    nothing more after it than the script wanted, only scripted models answered from then on, and each answer of the
    agent's is a text of the script's.
    """
    met: dict[AttemptRef, FaultWitnessed] = {}
    calls: list[CallFinished] = []
    told: list[tuple[int, str]] = []
    for event in events:
        match event:
            case FaultWitnessed():
                met[event.at] = event
            case CallFinished():
                calls.append(event)
            case TurnFinished():
                told.append((len(calls), event.answer))
            case PromptFinished() if not told:
                told.append((len(calls), event.answer))
    places = {call.at: place for place, call in enumerate(calls)}
    first = min((places.get(at, -1) for at in met), default=-1)
    models = {call.target for call in calls if call.finish_reason is not None}
    if first < 0 or not all(_went_to_a_script(event.fault, calls, places[at], models) for at, event in met.items()):
        return ""
    said = {call.reply for call in calls[first:] if _of_script(call)}
    if not all(line(answer, REPLY_MAX) in said for place, answer in told if place > first):
        return ""
    faults = ", ".join(dict.fromkeys(f"{event.fault} on {event.target}" for event in met.values()))
    scripts = ", ".join(dict.fromkeys(call.target for call in calls if _of_script(call)))
    return (
        f"only a script was given what came of {faults}: {scripts} says the same whatever it is sent, so this shows "
        "nothing of what the agent makes of it"
    )


def _went_to_a_script(fault: str, calls: Sequence[CallFinished], place: int, models: Set[str]) -> bool:
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


def _of_script(call: CallFinished) -> bool:
    return call.said_by is not None


def _repeats(call: CallFinished, other: CallFinished) -> bool:
    return (call.target, call.request) == (other.target, other.request)
