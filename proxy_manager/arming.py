"""Runs as the manager serves them, and their lanes on Toxiproxy: made for one call with the toxics of its fault, read
back, and taken down."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from chaoslab.base.clock import Clock
from chaoslab.core.chain import ActiveFault
from chaoslab.core.limits import LimitGuard
from chaoslab.core.plan import Plan
from chaoslab.record.log import Log
from chaoslab.wire import lane_names
from chaoslab.wire.control import CallRow
from chaoslab.wire.fault_lifecycle import REFUSED, build_lane_toxics, has_refusing_fault, make_lane_key
from chaoslab.wire.proxies import ToxicInfo, ToxiproxyDown, ToxiproxyError

if TYPE_CHECKING:
    from chaoslab.wire.toxiproxy_package import ServedProxy, ToxiproxyServer


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
    def has_own_proxy(self) -> bool:
        """True if the proxy was made for this call alone and is deleted with it."""
        return self.proxy != REFUSED and not self.stands

    @property
    def fault_names(self) -> str:
        """The names of its faults, in one word."""
        return " and ".join(item.fault_name for item in self.active)


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
    proxies that stay for several calls by their key (`fault_lifecycle.make_lane_key`)."""

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
    guard: LimitGuard = field(default_factory=LimitGuard)
    """Keeps to the plan's limits and to the lever; `others` are the lanes in force."""
    paused: str = ""
    """The words of whoever has pulled the lever, as far as the log has them."""

    @property
    def proxy_names(self) -> set[str]:
        """The names of all proxies that the run has now, beside the clean ones."""
        return {lane.proxy for lane in self.lanes.values()} | {lane.proxy for lane in self.standing.values()}


LEASE_S = 60
"""The time that a lane may stand after its deadline. One that stands longer has lost its owner, and any manager may
reap it."""


@dataclass(frozen=True)
class Places:
    """The addresses where Toxiproxy binds, and where callers reach it: in containers these differ."""

    bind: str
    dial: str
    proxy_ports: dict[str, int]
    refused_port: int


def create_proxy_with_toxics(
    toxiproxy: ToxiproxyServer,
    name: str,
    *,
    upstream: str,
    listen: str = "127.0.0.1:0",
    toxics: Sequence[ToxicInfo] = (),
) -> ServedProxy:
    """Makes a proxy with its toxics, reads them back and compares: all of it or nothing. Raises ToxiproxyError:
    refused, or the server holds something else. No proxy is left behind."""
    wanted = {toxic.name: (toxic, toxic.make_api_arguments()) for toxic in toxics}  # checked before the first request
    proxy = toxiproxy.create(upstream=upstream, name=name, listen=listen)
    try:
        for _, options in wanted.values():
            proxy.add_toxic(**options)
        # Read back: only what the server says it holds is armed.
        held = proxy.toxics()
        wrong = [vars(held[key]) for key, (toxic, _) in wanted.items() if key in held and toxic.differs_from(held[key])]
        checks = {
            f"its upstream is {proxy.upstream}": proxy.upstream == upstream,
            "it is disabled": bool(proxy.enabled),
            f"its toxics are {sorted(held)}": held.keys() == wanted.keys(),
            f"toxic {wrong[:1]}": not wrong,
        }
        if why := next((words for words, right in checks.items() if not right), ""):
            raise ToxiproxyError(f"{toxiproxy.url} does not hold '{name}' as asked: {why}", status=200)
    # Also at a Ctrl-C: a lane left behind would wait for its lease.
    except BaseException:
        with contextlib.suppress(ToxiproxyError):  # the first error matters, and is being raised
            proxy.destroy()
        raise
    return proxy


class LaneMaker:
    """The maker of lanes, for one thread. `trouble` may be read from any thread: an error that nobody waits for."""

    def __init__(self, toxiproxy: ToxiproxyServer, *, places: Places, clock: Clock) -> None:
        self._toxiproxy, self._places, self._clock = toxiproxy, places, clock
        self.trouble = ""

    def make_lane_for_call(
        self, experiment: OpenRun, row: CallRow, active: Sequence[ActiveFault]
    ) -> tuple[ArmedLane, int]:
        """Makes a proxy for this call alone with its toxics, and reads it back; returns the lane and its port. Calls
        that meet faults which go on for a time share a proxy, which stays."""
        # Not longer than the plan's own lease: a killed manager's lanes must end with it.
        lease_s = min([LEASE_S, *(math.ceil(limit.lease_s) for limit in experiment.plan.limits if limit.lease)])
        until_s = self._clock.monotonic() + row.deadline_s + lease_s
        if has_refusing_fault(active):
            # Enabled by somebody else, it would let calls through that are to be refused.
            if self._toxiproxy.fetch_proxy(REFUSED).enabled:
                raise ToxiproxyError(f"the proxy '{REFUSED}' has been enabled by somebody else", status=None)
            return ArmedLane(active, REFUSED, row, until_s), self._places.refused_port
        key = make_lane_key(active, row.call)
        if key and (standing := self._find_shared_lane(experiment, key, row)) is not None:
            return ArmedLane(active, standing.proxy, row, until_s, stands=True), standing.port
        toxics = build_lane_toxics(active)
        experiment.count += 1
        # By the wall clock, as other processes read it off the name; `until_s` is by the monotonic one, for this
        # process.
        expires = math.ceil(self._clock.utc().timestamp() + row.deadline_s) + lease_s
        name = lane_names.make_lane_name(row.call.target, experiment.run, experiment.count, expires)
        upstream = experiment.targets[row.call.target]
        armed = create_proxy_with_toxics(
            self._toxiproxy, name, upstream=upstream, listen=f"{self._places.bind}:0", toxics=toxics
        )
        # Port 0 was asked for, so the server tells which it is.
        port = int(armed.listen.rpartition(":")[2])
        if key:
            experiment.standing[key] = StandingLane(name, port, row.call.trial, until_s)
        return ArmedLane(active, name, row, until_s, stands=bool(key)), port

    def _find_shared_lane(self, experiment: OpenRun, key: str, row: CallRow) -> StandingLane | None:
        """The proxy that stands under this key, read back; None if there is none whose lease is long enough."""
        lane = experiment.standing.get(key)
        # It has to outlast this call.
        if lane is None or lane.until_s < self._clock.monotonic() + row.deadline_s:
            return None
        try:
            self._toxiproxy.fetch_proxy(lane.proxy)
        except ToxiproxyError as error:
            # Gone, as after a restart of Toxiproxy; it is made anew.
            if error.status != 404:
                raise
            del experiment.standing[key]
            return None
        return lane

    def delete_idle_shared_lanes(self, experiment: OpenRun, *, trial: str | None = None) -> None:
        """Deletes the proxies that stayed for several calls and that none uses now: those with an expired lease, and
        those of other trials than `trial`, if it is given."""
        used = {lane.proxy for lane in experiment.lanes.values()}
        now_s = self._clock.monotonic()
        for key, lane in tuple(experiment.standing.items()):
            over = lane.until_s < now_s or trial not in (None, lane.trial)
            if over and lane.proxy not in used:
                del experiment.standing[key]
                self.delete_proxy(lane.proxy)

    def delete_proxy(self, proxy: str) -> None:
        """Deletes a proxy that may be gone already. Other errors make /health report trouble, and the loop goes on."""
        try:
            self._toxiproxy.destroy(proxy)
        except ToxiproxyDown:
            return  # all proxies are gone with it, or will soon be found missing
        except ToxiproxyError as error:
            if error.status != 404:
                self.trouble = str(error)

    def delete_expired_lanes(self, *, own: set[str]) -> None:
        """Deletes the lanes with an expired lease, of any manager but those in `own`: their lease counts by the
        monotonic clock."""
        now = self._clock.utc().timestamp()
        for name in self._toxiproxy.proxies():
            # Not those of this manager, whose leases count by the monotonic clock: the wall clock may be set.
            if name not in own and lane_names.is_lane_expired(name, now):
                self.delete_proxy(name)
