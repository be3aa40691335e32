"""A run as the manager serves it, and its lanes."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from chaoslab.core.chain import ActiveFault
from chaoslab.core.limits import Guard
from chaoslab.core.plan import Plan
from chaoslab.record.log import Log
from chaoslab.wire.control import CallRow
from chaoslab.wire.fault_lifecycle import REFUSED


@dataclass
class ArmedLane:
    """The armed faults of one call and the proxy that carries them. `lost`: the proxy disappeared before the call was
    over. `stands`: the proxy stays for further calls."""

    active: Sequence[ActiveFault]
    proxy: str
    row: CallRow
    until_s: float
    """The end of its lease by the monotonic clock, since the wall clock may be set meanwhile."""
    lost: bool = False
    stands: bool = False

    @property
    def own(self) -> bool:
        """True if the proxy was made for this call alone and is deleted with it."""
        return self.proxy != REFUSED and not self.stands

    @property
    def faults(self) -> str:
        """The names of its faults, in one word."""
        return " and ".join(each.fault_name for each in self.active)


@dataclass(frozen=True)
class StandingLane:
    """A proxy with faults that go on for a time, its port, its trial, and the end of its lease."""

    proxy: str
    port: int
    trial: str
    until_s: float


@dataclass
class OpenRun:
    """An open run: its plan, its log, each target's upstream, the lanes in force by the row of their call, and the
    proxies that stay for several calls by their key (`fault_lifecycle.standing_key`)."""

    run: str
    plan: Plan
    log: Log
    targets: dict[str, str]
    lever: Path
    """The file that pauses the manager for this run by being there."""
    lanes: dict[int, ArmedLane] = field(default_factory=dict)
    count: int = 0
    plans: int = 1
    """The number of the plan that is in force: the agent may put another in its place."""
    standing: dict[str, StandingLane] = field(default_factory=dict)
    guard: Guard = field(default_factory=Guard)
    """Keeps to the plan's limits and to the lever; `others` are the lanes in force."""
    paused: str = ""
    """The words of whoever has pulled the lever, as far as the log has them."""

    @property
    def proxies(self) -> set[str]:
        """The names of all proxies that the run has now, beside the clean ones."""
        return {lane.proxy for lane in self.lanes.values()} | {lane.proxy for lane in self.standing.values()}
