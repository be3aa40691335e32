"""A run as the manager serves it, and its lanes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from chaoslab.core.chain import ActiveFault
from chaoslab.core.plan import Plan
from chaoslab.record.log import Log
from chaoslab.wire.control import Row
from chaoslab.wire.fault_lifecycle import REFUSED


@dataclass
class Lane:
    """The armed faults of one call and the proxy that carries them. `lost`: the proxy disappeared before the call was
    over."""

    active: Sequence[ActiveFault]
    proxy: str
    row: Row
    until_s: float
    """The end of its lease by the monotonic clock, since the wall clock may be set meanwhile."""
    lost: bool = False

    @property
    def own(self) -> bool:
        """True if the proxy was made for this call alone and is deleted with it."""
        return self.proxy != REFUSED

    @property
    def faults(self) -> str:
        """The names of its faults, in one word."""
        return " and ".join(each.fault_name for each in self.active)


@dataclass
class Experiment:
    """An open run: its plan, its log, each target's upstream, and the lanes in force by the row of their call."""

    run: str
    plan: Plan
    log: Log
    targets: dict[str, str]
    lanes: dict[int, Lane] = field(default_factory=dict)
    count: int = 0
