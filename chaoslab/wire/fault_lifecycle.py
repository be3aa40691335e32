"""The life of a fault of the wire: its events in their order, and its toxics for Toxiproxy."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from chaoslab.core import events
from chaoslab.core.chain import ActiveFault
from chaoslab.core.events import Event
from chaoslab.core.exchange import Call, Observation, Toxic
from chaoslab.core.fault import get_trait
from chaoslab.wire import toxics
from chaoslab.wire.proxies import ToxicInfo

REFUSED = "refused"
"""The lane without a listener, to which every call goes that is to be refused."""


def has_refusing_fault(active: Sequence[ActiveFault]) -> bool:
    """Tells if a fault among them refuses the connection, so the call needs no lane of its own."""
    return any(get_trait(active_fault.fault, "refuses") for active_fault in active)


def make_toxic_info(toxic: Toxic) -> ToxicInfo:
    """The toxic with Toxiproxy's names and units. An attribute that its type does not translate keeps its name."""
    try:
        units = toxics.load_toxic(toxic.type).UNITS
    except LookupError:  # not one of ours: the user's Toxiproxy may know it
        units = {}
    named = ((*units.get(key, (key, 1)), value) for key, value in toxic.params.items())
    # Toxiproxy takes integers alone (1.5 is a 400), so a fraction of its unit is rounded.
    attributes = {name: round(value * factor) for name, factor, value in named}
    # Toxicity 1 always: with keep-alive a lower p gives p/(1-p) faults for a whole run, however many requests it has.
    return ToxicInfo(f"{toxic.type}_{toxic.stream}", toxic.type, toxic.stream or "downstream", 1.0, attributes)


def build_lane_toxics(active: Sequence[ActiveFault]) -> list[ToxicInfo]:
    """The toxics of the lane that carries these faults, in their order, each with a name of its own."""
    toxics = [make_toxic_info(toxic) for active_fault in active for toxic in active_fault.toxics()]
    counts: Counter[str] = Counter()
    # Toxiproxy refuses a second toxic of one name with 409, on whichever stream.
    for index, info in enumerate(toxics):
        counts[info.name] += 1
        if counts[info.name] > 1:
            toxics[index] = replace(info, name=f"{info.name}_{counts[info.name]}")
    return toxics


def make_lane_key(active: Sequence[ActiveFault], call: Call) -> str:
    """The key under which a lane with these faults may stay for further calls; empty unless all of them go on for a
    time. Equal keys are equal lanes."""
    # Such faults have a lane of their own rather than toxics on the clean proxy, which would hit calls in flight, calls
    # that a trigger spares, and other trials, and nobody would witness it.
    # Another fault would hit the later calls of a kept connection too; "refused" is one permanent proxy for all calls.
    if has_refusing_fault(active) or not all(active_fault.stands for active_fault in active):
        return ""
    # The values belong to the key: the same fault with another draw is another lane.
    faults = [
        (active_fault.injection, active_fault.fault_name, sorted(vars(active_fault.fault).items()))
        for active_fault in active
    ]
    return f"{call.trial} {call.target} {faults}"


def iterate_armed_events(active: Sequence[ActiveFault], call: Call, *, lane: str, took_s: float) -> Iterator[Event]:
    """The events to log once the faults' lane stands, before the call gets the lane's address."""
    for active_fault in active:
        yield events.FaultArmed(
            fault=active_fault.fault_name,
            injection=active_fault.injection,
            at=call.attempt_ref,
            lane=lane,
            took_s=took_s,
        )


def iterate_healed_events(
    active: Sequence[ActiveFault], call: Call, observation: Observation | None
) -> Iterator[Event]:
    """The events to log once the call is over and its lane gone. `observation`: the caller's observation; None if
    the lane was lost or its caller is gone, so nothing is known."""
    # For all before the first event: the fault that ended the call may come after one that it masked.
    evidence = [active_fault.find_evidence(observation) if observation is not None else None for active_fault in active]
    # Only an end of the call keeps other faults from showing: of two delays both are met.
    ended = observation is not None and observation.error is not None
    ender = (
        next(
            (
                active_fault.fault_name
                for active_fault, evidence_text in zip(active, evidence, strict=True)
                if evidence_text
            ),
            "",
        )
        if ended
        else ""
    )
    for active_fault, evidence_text in zip(active, evidence, strict=True):
        fault, injection, at = active_fault.fault_name, active_fault.injection, call.attempt_ref
        if evidence_text:
            yield events.FaultInjected(fault=fault, injection=injection, at=at)
            yield events.FaultWitnessed(fault=fault, injection=injection, at=at, evidence=evidence_text)
        idle = active_fault.explain_idle(observation) if observation is not None and not evidence_text else ""
        yield events.FaultHealed(
            fault=fault,
            injection=injection,
            at=at,
            witnessed=evidence_text is not None,
            # A fault with evidence of its own was met, whichever fault ended the call.
            masked_by="" if evidence_text else ender,
            idle=idle,
        )
