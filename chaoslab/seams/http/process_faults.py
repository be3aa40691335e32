"""The outages of services whose processes the world's supervisor stops: asks for them, and knows which goes on and
which calls met it."""

import asyncio
import sqlite3
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chaoslab.base.clock import Clock
from chaoslab.core.chain import ActiveFault
from chaoslab.core.exchange import Call
from chaoslab.core.fault import Outage, OutageCut
from chaoslab.wire.control import ControlDatabase, explain_database_error

# The failures of a call to a process that is down, through a proxy or around it. A dead container has no name.
CUT = ("closed", "reset", "refused", "dns")
MET_AS = {"refused": OutageCut("refused"), "dns": OutageCut("dns")}
# Seconds in which a supervisor stops a process, in a container too.
STOPPED_S = 60.0
# Seconds in which a process that was killed answers again.
BACK_S = 60.0
POLL_S, POLL_SHARE = 0.005, 0.01
"""The least wait between two looks, and its share of the time waited so far."""


class NotStopped(Exception):
    """Nobody could stop the process, or it did not come back; one line has the reason."""


class OutageRequests:
    """One run's requests to its supervisor, for one event loop."""

    def __init__(self, state: Path, run: str, *, clock: Clock) -> None:
        self._control, self._state, self._run, self._clock = ControlDatabase(state), state, run, clock

    async def stop_process(self, service: str, kind: str, *, for_s: float, fault: Mapping[str, Any]) -> int:
        """Returns the outage's number once the process is killed or paused. Raises NotStopped: it could not be, or
        nobody answers."""
        try:
            row = self._control.request_outage(self._run, service, kind, for_s=for_s, fault=fault)
            state = await self._await_state_other_than(row, "asked", STOPPED_S)
        except sqlite3.Error as error:
            raise NotStopped(explain_database_error(self._state, error)) from error
        # No supervisor has taken the row: the local world without `chaoslab lab` has none.
        if state == "asked":
            raise NotStopped(
                f"nobody stops the process of {service} here: start the lab with `chaoslab lab`, which supervises it"
            )
        return row

    def is_outage_over(self, row: int) -> bool:
        """True if the process answers again. Raises NotStopped: it does not come back."""
        try:
            return self._get_outage_state(row) == "over"
        except sqlite3.Error as error:
            raise NotStopped(explain_database_error(self._state, error)) from error

    async def end_outages(self, rows: list[int]) -> None:
        """Ends these outages, and returns once the processes answer. Raises NotStopped: one does not."""
        try:
            self._control.end_outages(self._run)
            for row in rows:
                # All were asked to end at once above, so waiting for one after the other costs no more than the
                # longest.
                if await self._await_state_other_than(row, "stopped", BACK_S) == "stopped":
                    raise NotStopped("a service whose process was stopped does not answer again")
        except sqlite3.Error as error:
            raise NotStopped(explain_database_error(self._state, error)) from error

    async def _await_state_other_than(self, row: int, state: str, within_s: float) -> str:
        """The state that comes after this one, or this one if it lasts longer."""
        began_s = self._clock.monotonic()
        while (next_state := self._get_outage_state(row)) == state:
            if (waited_s := self._clock.monotonic() - began_s) >= within_s:
                break
            # Rarer the longer it lasts, so that a long outage costs few looks into the database.
            await self._clock.sleep_async(max(POLL_S, POLL_SHARE * waited_s))
        return next_state

    def _get_outage_state(self, row: int) -> str:
        state, error = self._control.get_outage_state(row)
        if state == "failed":
            raise NotStopped(error)
        return state

    def close(self) -> None:
        self._control.close()


@dataclass(frozen=True)
class ConfirmedOutage:
    """An outage that the supervisor has confirmed. `until_s`: the process is not back before."""

    row: int
    active: ActiveFault
    outage: Outage
    until_s: float

    def make_fault_if_met(self, error: str | None, *, began_s: float, ended_s: float) -> ActiveFault | None:
        """The fault of another call that this outage met, by its failure and its time; None if it did not."""
        name, injection = self.active.fault_name, self.active.injection
        if self.outage.held is None:
            cut = MET_AS.get(error or "", OutageCut("reset"))
            return ActiveFault(injection, name, cut) if error in CUT else None
        left_s = self.until_s - began_s
        # A partitioned service may end a connection in any way once it is back, so any failure while it lasts is its
        # own.
        if left_s > 0 and error is not None and self.outage.how == "partitioned":
            return ActiveFault(injection, name, self.outage.held(left_s))
        # A paused process loses nothing: a call that ended in time, or failed in another way, has not met the pause.
        if left_s <= 0 or (error != "timed_out" and ended_s < self.until_s):
            return None
        return ActiveFault(injection, name, self.outage.held(left_s))


class ProcessFaults:
    """The outages of one trial after the other, by service."""

    def __init__(self, requests: OutageRequests, clock: Clock) -> None:
        self._requests, self._clock = requests, clock
        self._stopped: dict[str, ConfirmedOutage] = {}
        self._asking: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def begin_outage(self, active: ActiveFault, call: Call) -> ConfirmedOutage | None:
        """Stops the process of the call's service; None if an outage of it goes on. Raises NotStopped: the supervisor
        could not."""
        outage = active.fault.outage()
        async with self._asking[call.target]:  # of two calls at once, the second meets the outage of the first
            if outage is None or self.find_active_outage(call.target):
                return None
            return await self._stop_process(active, outage, call)

    async def _stop_process(self, active: ActiveFault, outage: Outage, call: Call) -> ConfirmedOutage:
        asked_s = self._clock.monotonic()
        at = call.attempt_ref
        row = await self._requests.stop_process(
            call.target,
            outage.how,
            for_s=outage.for_s,
            fault={
                "fault": active.fault_name,
                "injection": active.injection,
                "trial": call.trial,
                "turn": at.turn,
                "request": at.request,
                "attempt": at.attempt,
                "request_id": at.request_id,
                "share": outage.share,
            },
        )
        confirmed = self._stopped[call.target] = ConfirmedOutage(row, active, outage, asked_s + outage.for_s)
        return confirmed

    def count_active(self) -> int:
        """The number of outages that go on."""
        # Asked of the state file each time: the supervisor alone knows when a process answers again.
        return sum(not self._requests.is_outage_over(confirmed.row) for confirmed in self._stopped.values())

    def find_active_outage(self, service: str) -> ConfirmedOutage | None:
        """The outage of this service that is not over; None if there is none. Raises NotStopped: the service does not
        come back."""
        confirmed = self._stopped.get(service)
        if confirmed is not None and self._requests.is_outage_over(confirmed.row):
            del self._stopped[service]
            return None
        return confirmed

    async def end_outages(self) -> None:
        """Ends all outages with their trial, and waits until the services answer. Raises NotStopped: one does not."""
        if self._stopped:
            await self._requests.end_outages([confirmed.row for confirmed in self._stopped.values()])
            self._stopped.clear()
        self._asking.clear()
