"""The life of a fault of the wire: its events in their order, and its toxics for Toxiproxy."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from chaoslab.core import events
from chaoslab.core.chain import ActiveFault
from chaoslab.core.events import Event
from chaoslab.core.exchange import Call, Observation, Toxic
from chaoslab.core.fault import trait
from chaoslab.wire import toxics
from chaoslab.wire.proxies import ToxicInfo

REFUSED = "refused"
"""The lane without a listener, to which every call goes that is to be refused."""


def is_refused(active: Sequence[ActiveFault]) -> bool:
    """Tells if a fault among them refuses the connection, so the call needs no lane of its own."""
    return any(trait(each.fault, "refuses") for each in active)


def in_toxiproxys_words(toxic: Toxic) -> ToxicInfo:
    """The toxic with Toxiproxy's names and units. An attribute that its type does not translate keeps its name."""
    try:
        units = toxics.load(toxic.type).UNITS
    except LookupError:  # not one of ours: the user's Toxiproxy may know it
        units = {}
    named = ((*units.get(key, (key, 1)), value) for key, value in toxic.params.items())
    attributes = {name: round(value * factor) for name, factor, value in named}
    return ToxicInfo(f"{toxic.type}_{toxic.stream}", toxic.type, toxic.stream or "downstream", 1.0, attributes)


def toxics_of(active: Sequence[ActiveFault]) -> list[ToxicInfo]:
    """The toxics of the lane that carries these faults, in their order, each with a name of its own."""
    found = [in_toxiproxys_words(toxic) for each in active for toxic in each.toxics()]
    seen: Counter[str] = Counter()
    for place, info in enumerate(found):
        seen[info.name] += 1
        if seen[info.name] > 1:
            found[place] = replace(info, name=f"{info.name}_{seen[info.name]}")
    return found


def standing_key(active: Sequence[ActiveFault], call: Call) -> str:
    """The key under which a lane with these faults may stay for further calls; empty unless all of them go on for a
    time. Equal keys are equal lanes."""
    if is_refused(active) or not all(each.stands for each in active):
        return ""
    faults = [(each.injection, each.fault_name, sorted(vars(each.fault).items())) for each in active]
    return f"{call.trial} {call.target} {faults}"


def armed(active: Sequence[ActiveFault], call: Call, *, lane: str, took_s: float) -> Iterator[Event]:
    """The events to log once the faults' lane stands, before the call gets the lane's address."""
    for each in active:
        yield events.FaultArmed(fault=each.fault_name, injection=each.injection, at=call.at, lane=lane, took_s=took_s)


def healed(active: Sequence[ActiveFault], call: Call, seen: Observation | None) -> Iterator[Event]:
    """The events to log once the call is over and its lane gone. `seen`: the caller's observation; None if the lane was
    lost or its caller is gone, so nothing is known."""
    evidence = [each.evidence(seen) if seen is not None else None for each in active]
    ended = seen is not None and seen.error is not None
    by = next((each.fault_name for each, said in zip(active, evidence, strict=True) if said), "") if ended else ""
    for each, said in zip(active, evidence, strict=True):
        fault, injection, at = each.fault_name, each.injection, call.at
        if said:
            yield events.FaultInjected(fault=fault, injection=injection, at=at)
            yield events.FaultWitnessed(fault=fault, injection=injection, at=at, evidence=said)
        idle = each.idle(seen) if seen is not None and not said else ""
        yield events.FaultHealed(
            fault=fault, injection=injection, at=at, witnessed=said is not None, masked_by="" if said else by, idle=idle
        )
