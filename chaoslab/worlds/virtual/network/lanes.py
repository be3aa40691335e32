"""Lanes of a virtual world: the embedded proxy's own connections and toxics, on the virtual network.

For the seam they replace `wire/lanes.py` with its manager and Toxiproxy, and log the same events.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from chaoslab.base.clock import Clock
from chaoslab.base.dice import Dice
from chaoslab.core.chain import ActiveFault
from chaoslab.core.events import Event
from chaoslab.core.exchange import Call, Observation
from chaoslab.core.limits import LimitGuard
from chaoslab.core.memory import make_held_back_fault_logger
from chaoslab.core.occasion import Occasion
from chaoslab.core.plan import Plan
from chaoslab.record.log import Log
from chaoslab.wire import fault_lifecycle, toxics
from chaoslab.wire.control import FIRST, ManagerAnswer
from chaoslab.wire.lanes import Health, LabDown
from chaoslab.wire.proxies import ToxicInfo
from chaoslab.wire.server.end import AttachedToxic
from chaoslab.wire.server.proxy import ProxiedConnections
from chaoslab.wire.server.turns import WorkerTimer
from chaoslab.worlds.virtual.network._context import world
from chaoslab.worlds.virtual.network._loop import VirtualLoop
from chaoslab.worlds.virtual.network.network import NOBODY, Address, Network, NetworkEnd

LOOPBACK = "127.0.0.1"


class Lane(ProxiedConnections):
    """An address on the virtual network whose connections run to one upstream, on the given loop."""

    def __init__(self, network: Network, loop: VirtualLoop, *, upstream: Address, dice: Dice) -> None:
        super().__init__(dice, WorkerTimer(loop.time, soon_s=0.0))  # timers are never late here
        self._network, self._loop, self._upstream = network, loop, upstream
        self._accepts = self._make_protocol_factory()
        self.address = network.listen(LOOPBACK, 0, self._handle_new_connection)

    @property
    def upstream_address(self) -> Address:
        return self._upstream

    def _handle_new_connection(self, end: NetworkEnd) -> None:
        self._loop.call_if_open(self._loop.accept_connection, self._accepts, end)

    def close_lane(self) -> None:
        """Stops listening and drops the open connections. May be called from any thread."""
        self._network.stop_listening(*self.address)
        self._loop.call_if_open(self.drop_connections)


def _make_attached_toxic(info: ToxicInfo) -> AttachedToxic:
    kind = toxics.load_toxic(info.type)(**info.attributes)
    return AttachedToxic(info.name, info.type, info.stream, info.toxicity, kind)


@dataclass
class _Armed:
    active: Sequence[ActiveFault]
    call: Call
    lane: Lane | None


class VirtualLanes:
    """The lanes of one trial. `targets`: the upstream address of each. `log` gets the events that a manager would
    log."""

    def __init__(self, *, log: Log, plan: Plan, network: Network, clock: Clock, targets: Mapping[str, Address]) -> None:
        self._log, self._plan, self._network, self._clock, self._targets = log, plan, network, clock, targets
        self._rows = self._lanes = 0
        self._guard = LimitGuard(plan.limits, clock=clock)
        self._guard.tell = make_held_back_fault_logger(lambda event: log.write(event, trial=event.at.trial))
        self._armed: dict[int, _Armed] = {}
        self._standing: dict[str, tuple[str, Lane]] = {}
        self._loop: VirtualLoop | None = None
        self.down: LabDown | None = None

    async def request_lane(
        self,
        call: Call,
        *,
        deadline_s: float,  # noqa: ARG002 - no lane is late
        occasion: Mapping[str, Any] = FIRST,
    ) -> tuple[int, ManagerAnswer]:
        """The number of this call, from 1, and the address to use."""
        self._rows += 1
        row = self._rows
        occasion_ = Occasion.from_json(self._plan.seed, call, occasion)
        active, rolled = self._plan.find_wire_hits(call, occasion_, self._guard)
        if not active:
            return row, ManagerAnswer("clear", rolled=rolled)
        for fault in active:
            self._log_event(fault.build_scheduled_event(call), call)
        began_s = self._clock.monotonic()
        # Faults that go on for a time stand on one lane for all their calls; any other call has a lane of its own.
        key = fault_lifecycle.make_lane_key(active, call)
        if fault_lifecycle.has_refusing_fault(active):
            name, lane = fault_lifecycle.REFUSED, None
        elif key in self._standing:
            name, lane = self._standing[key]
        else:
            name, lane = self._open_lane(active, call)
            if key:
                self._standing[key] = name, lane
        self._armed[row] = _Armed(active, call, None if key else lane)
        took_s = self._clock.monotonic() - began_s
        for event in fault_lifecycle.iterate_armed_events(active, call, lane=name, took_s=took_s):
            self._log_event(event, call)
        # "Refused" needs no lane: the address has no listener.
        return row, ManagerAnswer("armed", *(lane.address if lane else NOBODY), rolled, stands=bool(key))

    def _open_lane(self, active: Sequence[ActiveFault], call: Call) -> tuple[str, Lane]:
        self._lanes += 1
        name = f"lane.{call.target}.{self._lanes}"
        if self._loop is None:
            # At the first lane: most trials have none.
            self._loop = world().create_loop()
            # On a loop of its own, as the real proxy is a process of its own.
            world().machine.start_thread(self._loop.run_until_stopped, name="toxiproxy")
        dice = Dice(self._plan.seed, call.trial, name)
        lane = Lane(self._network, self._loop, upstream=self._targets[call.target], dice=dice)
        for info in fault_lifecycle.build_lane_toxics(active):
            lane.attach_toxic(_make_attached_toxic(info))
        return name, lane

    def end_call_with_observation(self, row: int, observation: Observation) -> None:
        """Takes down the call's lane, and logs if its fault was witnessed."""
        armed = self._armed.pop(row)
        self._guard.end_attempt(armed.call.target, armed.call.request, armed.call.attempt)
        if armed.lane is not None:
            armed.lane.close_lane()
        for event in fault_lifecycle.iterate_healed_events(armed.active, armed.call, observation):
            self._log_event(event, armed.call)

    def _log_event(self, event: Event, call: Call) -> None:
        self._log.write(event, trial=call.trial)

    async def has_lost_proxies(self, answer: ManagerAnswer) -> bool:  # noqa: ARG002
        """Always False: nothing here disappears during a call."""
        return False

    async def fetch_health(self) -> Health:
        """The health of the lanes; raises LabDown after `raise_lab_down`."""
        if self.down is not None:
            raise self.down
        return Health()

    def raise_lab_down(self, reason: str) -> None:
        """Raises LabDown, and remembers it."""
        self.down = LabDown(reason)
        raise self.down
