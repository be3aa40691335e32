"""The outages of services that the lab serves itself: whose process is down or paused, and until when."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from chaoslab.base.clock import Clock
from chaoslab.base.identity import Request
from chaoslab.core.chain import ActiveFault
from chaoslab.core.fault import Outage, OutageCut


class DroppableConnection(Protocol):
    """A connection of a service."""

    def break_connection(self) -> None:
        """Breaks it, as its process's death does."""

    def end_connection_of_killed_client(self) -> None:
        """Ends it as the death of its client does."""


@dataclass(frozen=True)
class CurrentOutage:
    """An outage that goes on. `request`: the one at which it began."""

    outage: Outage
    injection: str
    fault_name: str
    until_s: float
    request: Request

    def make_cut_fault(self, active: OutageCut) -> ActiveFault:
        """The fault of a call whose connection the outage broke or refused."""
        return ActiveFault(self.injection, self.fault_name, active)


class Outages:
    """The outages of one trial, by service. `resets`: the functions that make a service lose its state; a service
    without one keeps it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.resets: dict[str, Callable[[], object]] = {}
        # By service, since an outage is there for all of its clients.
        self._current: dict[str, CurrentOutage] = {}
        self._lines: dict[str, dict[int, DroppableConnection]] = {}

    def begin_trial(self) -> None:
        """Begins a trial."""
        self._current, self._lines = {}, {}

    def add_connection(self, name: str, line: DroppableConnection) -> None:
        """Takes a connection of a service."""
        # By identity, since connections have no names and may be alike.
        self._lines.setdefault(name, {})[id(line)] = line

    def remove_connection(self, name: str, line: DroppableConnection) -> None:
        """Forgets a connection that is over."""
        # It may have been dropped with the outage's others.
        self._lines.get(name, {}).pop(id(line), None)

    def begin_outage(self, name: str, active: ActiveFault, request: Request) -> CurrentOutage | None:
        """The outage that begins with this fault; None if it has none, or if one goes on. The connections of a process
        that is down are broken."""
        outage = active.fault.outage()
        # One at a time: a process that is down cannot be paused too.
        if outage is None or self.get_active(name) is not None:
            return None
        until_s = self._clock.monotonic() + outage.for_s
        current = self._current[name] = CurrentOutage(outage, active.injection, active.fault_name, until_s, request)
        # A process that is killed loses what it held in memory; one that is paused keeps it, and its connections.
        if outage.lost and name in self.resets:
            self.resets[name]()
        if outage.held is None:
            # A copy, as each takes itself out when it drops.
            for line in list(self._lines.pop(name, {}).values()):
                line.break_connection()
        return current

    def end_connections_of_killed_client(self) -> None:
        """Ends all connections, whose client was killed."""
        for lines in self._lines.values():
            for line in list(lines.values()):
                line.end_connection_of_killed_client()

    def get_active(self, name: str) -> CurrentOutage | None:
        """The outage of the service that goes on; None if there is none."""
        current = self._current.get(name)
        # By the time alone: nobody ends it, so no event is missed.
        return current if current is not None and self._clock.monotonic() < current.until_s else None

    def count_active(self) -> int:
        """The number of outages that go on."""
        return sum(self.get_active(name) is not None for name in self._current)

    def get_last_outage_end_s(self, name: str) -> float:
        """The end of the last outage of a service that had one, by the clock."""
        return self._current[name].until_s

    def find_refusing_outage(self, name: str) -> CurrentOutage | None:
        """The outage for which the service refuses connections now."""
        # Asked for each connection and each answer, so the usual case is one look.
        current = self.get_active(name) if self._current else None
        return current if current is not None and current.outage.held is None else None

    def find_pause_fault(self, name: str) -> ActiveFault | None:
        """The fault of a call that comes now, or whose answer is ready, while the service is paused."""
        current = self.get_active(name) if self._current else None
        if current is None or current.outage.held is None:
            return None
        # What is left of it, and not all of it: the call came in its middle.
        fault = current.outage.held(current.until_s - self._clock.monotonic())
        return ActiveFault(current.injection, current.fault_name, fault)
