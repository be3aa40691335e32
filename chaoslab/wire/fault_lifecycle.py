"""The life of a fault of the wire: its events in their order, and its toxics for Toxiproxy."""

from __future__ import annotations

from collections.abc import Iterator

from chaoslab.core import events
from chaoslab.core.chain import ActiveFault
from chaoslab.core.events import Event
from chaoslab.core.exchange import Call, Toxic
from chaoslab.core.fault import trait
from chaoslab.wire import toxics
from chaoslab.wire.client import ToxicInfo

REFUSED = "refused"
"""The lane without a listener, to which every call goes that is to be refused."""


def is_refused(active: ActiveFault) -> bool:
    """Tells if the fault's connection is refused, so it needs no lane of its own."""
    return bool(trait(active.fault, "refuses"))


def in_toxiproxys_words(toxic: Toxic) -> ToxicInfo:
    """The toxic with Toxiproxy's names and units. An attribute that its type does not translate keeps its name."""
    try:
        units = toxics.load(toxic.type).UNITS
    except LookupError:  # not one of ours: the user's Toxiproxy may know it
        units = {}
    named = ((*units.get(key, (key, 1)), value) for key, value in toxic.params.items())
    attributes = {name: round(value * factor) for name, factor, value in named}
    return ToxicInfo(f"{toxic.type}_{toxic.stream}", toxic.type, toxic.stream or "downstream", 1.0, attributes)


def armed(active: ActiveFault, call: Call, *, lane: str, took_s: float) -> Event:
    """The event to log once the fault's lane stands, before the call gets the lane's address."""
    return events.FaultArmed(fault=active.fault_name, injection=active.injection, at=call.at, lane=lane, took_s=took_s)


def healed(active: ActiveFault, call: Call, *, evidence: str | None) -> Iterator[Event]:
    """The events to log once the call is over and the lane gone. `evidence` is the result of the fault's
    `witnessed`."""
    fault, injection, at = active.fault_name, active.injection, call.at
    if evidence:
        yield events.FaultInjected(fault=fault, injection=injection, at=at)
        yield events.FaultWitnessed(fault=fault, injection=injection, at=at, evidence=evidence)
    yield events.FaultHealed(fault=fault, injection=injection, at=at, witnessed=evidence is not None)
