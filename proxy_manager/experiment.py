"""A run as the manager serves it, its lanes, and how a fault's toxics are said to Toxiproxy."""

from __future__ import annotations

from dataclasses import dataclass, field

from chaoslab.exchange import Told, Toxic
from chaoslab.log import Log
from chaoslab.plan import Plan
from chaoslab.wire.client import ToxicInfo
from chaoslab.wire.control import Row

REFUSED = "refused"
"""The one proxy, disabled for good, to which every call goes that is to be refused."""

UNITS: dict[str, dict[str, tuple[str, int]]] = {
    "latency": {"delay_s": ("latency", 1000)},
    "timeout": {"after_s": ("timeout", 1000)},
    "reset_peer": {"after_s": ("timeout", 1000)},
}
"""Toxic type → the lab's parameter → Toxiproxy's attribute and how many of its units make one of ours."""


@dataclass
class Lane:
    """An armed fault and the proxy that carries it. `lost`: the proxy went away before the call was over."""

    told: Told
    proxy: str
    row: Row
    until_s: float
    """When its lease runs out, by the monotonic clock: the wall clock may be set while it stands."""
    lost: bool = False

    @property
    def own(self) -> bool:
        """Whether the proxy was made for this call alone, and goes with it."""
        return self.proxy != REFUSED


@dataclass
class Experiment:
    """A run that is open: its plan, its log, each target's upstream, and the lanes in force by the row of their call."""

    run: str
    plan: Plan
    log: Log
    targets: dict[str, str]
    lanes: dict[int, Lane] = field(default_factory=dict)
    count: int = 0


def fault_of(told: Told, row: Row) -> tuple[str, str, str, int, int, str]:
    """What every event of a fault begins with."""
    call = row.call
    return (told.fault_name, told.injection, call.target, call.request, call.attempt, call.request_id)


def in_toxiproxys_words(toxic: Toxic) -> ToxicInfo:
    names = UNITS.get(toxic.type, {})
    attributes = {names[key][0]: round(value * names[key][1]) for key, value in toxic.params.items()}
    return ToxicInfo(f"{toxic.type}_{toxic.stream}", toxic.type, toxic.stream or "downstream", 1.0, attributes)
