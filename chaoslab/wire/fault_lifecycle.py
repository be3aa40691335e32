"""How a fault of the wire lives, whoever carries it: what is logged of it, in which order, and what Toxiproxy is told."""

from __future__ import annotations

from collections.abc import Iterator

from chaoslab.core import events
from chaoslab.core.events import Event
from chaoslab.core.exchange import Call, Told, Toxic
from chaoslab.wire.client import ToxicInfo

REFUSED = "refused"
"""The one lane that nobody listens on, to which every call goes that is to be refused; and the toxic that asks for it."""

UNITS: dict[str, dict[str, tuple[str, int]]] = {
    "latency": {"delay_s": ("latency", 1000)},
    "timeout": {"after_s": ("timeout", 1000)},
    "reset_peer": {"after_s": ("timeout", 1000)},
}
"""Toxic type → the lab's parameter → Toxiproxy's attribute and how many of its units make one of ours."""


def is_refused(told: Told) -> bool:
    """Whether this fault needs no lane of its own."""
    return any(toxic.type == REFUSED for toxic in told.fault.toxics())


def in_toxiproxys_words(toxic: Toxic) -> ToxicInfo:
    names = UNITS.get(toxic.type, {})
    attributes = {names[key][0]: round(value * names[key][1]) for key, value in toxic.params.items()}
    return ToxicInfo(f"{toxic.type}_{toxic.stream}", toxic.type, toxic.stream or "downstream", 1.0, attributes)


def armed(told: Told, call: Call, *, lane: str, took_s: float) -> Event:
    """Once its lane stands, and before the call learns the lane's address."""
    return events.FaultArmed(fault=told.fault_name, injection=told.injection, at=call.at, lane=lane, took_s=took_s)


def healed(told: Told, call: Call, *, evidence: str | None) -> Iterator[Event]:
    """Once the call is over and the lane gone; `evidence` is what the fault makes of what was seen."""
    fault, injection, at = told.fault_name, told.injection, call.at
    if evidence:
        yield events.FaultInjected(fault=fault, injection=injection, at=at)
        yield events.FaultWitnessed(fault=fault, injection=injection, at=at, evidence=evidence)
    yield events.FaultHealed(fault=fault, injection=injection, at=at, witnessed=evidence is not None)
