"""The outages of services whose processes the world's supervisor stops: which goes on, and which calls met it."""

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from chaoslab.base.clock import Clock
from chaoslab.core.chain import ActiveFault
from chaoslab.core.exchange import Call
from chaoslab.core.fault import Outage, OutageCut

CUT = ("closed", "reset", "refused")
"""The failures of a call to a process that is down, through a proxy or around it."""


class OutageRequests(Protocol):
    """The way to the supervisor; see `wire.outages.OutageRequests`."""

    async def stop(self, service: str, how: str, *, for_s: float, fault: Mapping[str, Any]) -> int: ...
    def is_over(self, row: int) -> bool: ...
    async def end(self, rows: list[int]) -> None: ...


@dataclass(frozen=True)
class ConfirmedOutage:
    """An outage that the supervisor has confirmed. `until_s`: the process is not back before."""

    row: int
    active: ActiveFault
    outage: Outage
    until_s: float

    def met(self, error: str | None, *, began_s: float, ended_s: float) -> ActiveFault | None:
        """The fault of another call that this outage met, by its failure and its time; None if it did not."""
        name, injection = self.active.fault_name, self.active.injection
        if self.outage.held is None:
            cut = OutageCut("refused" if error == "refused" else "reset")
            return ActiveFault(injection, name, cut) if error in CUT else None
        left_s = self.until_s - began_s
        if left_s > 0 and error is not None and self.outage.how == "partitioned":
            return ActiveFault(injection, name, self.outage.held(left_s))
        if left_s <= 0 or (error != "timed_out" and ended_s < self.until_s):
            return None
        return ActiveFault(injection, name, self.outage.held(left_s))


class ProcessFaults:
    """The outages of one trial after the other, by service."""

    def __init__(self, requests: OutageRequests, clock: Clock) -> None:
        self._requests, self._clock = requests, clock
        self._stopped: dict[str, ConfirmedOutage] = {}
        self._asking: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def begin(self, active: ActiveFault, call: Call) -> ConfirmedOutage | None:
        """Stops the process of the call's service; None if an outage of it goes on. Raises NotStopped: the supervisor
        could not."""
        outage = active.fault.outage()
        if outage is None:
            return None
        async with self._asking[call.target]:  # of two calls at once, the second meets the outage of the first
            return None if self.going_on(call.target) else await self._begin(active, outage, call)

    async def _begin(self, active: ActiveFault, outage: Outage, call: Call) -> ConfirmedOutage:
        asked_s = self._clock.monotonic()
        at = call.at
        row = await self._requests.stop(
            call.target,
            outage.how,
            for_s=outage.for_s,
            fault={
                "fault": active.fault_name, "injection": active.injection, "trial": call.trial, "turn": at.turn,
                "request": at.request, "attempt": at.attempt, "request_id": at.request_id, "share": outage.share,
            },
        )  # fmt: skip
        found = self._stopped[call.target] = ConfirmedOutage(row, active, outage, asked_s + outage.for_s)
        return found

    def count(self) -> int:
        """The number of outages that go on."""
        return sum(not self._requests.is_over(found.row) for found in self._stopped.values())

    def going_on(self, service: str) -> ConfirmedOutage | None:
        """The outage of this service that is not over; None if there is none. Raises NotStopped: the service does not
        come back."""
        found = self._stopped.get(service)
        if found is not None and self._requests.is_over(found.row):
            del self._stopped[service]
            return None
        return found

    async def end(self) -> None:
        """Ends all outages with their trial, and waits until the services answer. Raises NotStopped: one does not."""
        if self._stopped:
            await self._requests.end([found.row for found in self._stopped.values()])
            self._stopped.clear()
        self._asking.clear()
