"""The seam's side of the wire: asks the proxy manager for an attempt's address, and reports the observation to it."""

import sqlite3
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from chaoslab.base.boundary import Through
from chaoslab.base.clock import Clock
from chaoslab.core.exchange import Call, Observation
from chaoslab.wire.control import FIRST, ControlDatabase, ManagerAnswer, explain_database_error

# A healthy manager answers within milliseconds, so one that is silent for this long is worth a look.
LATE_S = 0.25
"""Seconds after which the seam checks the manager's health."""
LOST_S = 10.0
"""Seconds after which a healthy manager that does not answer counts as broken."""
MENDING_S = 20.0
"""The most seconds that a manager may mend the lab. By itself it gives up sooner."""
FORGOTTEN = "the proxy manager was restarted and has forgotten this run"


class LabDown(Through):
    """The manager or Toxiproxy is gone, so the rest of the run would be no experiment. It is no `Exception`, since an
    SDK would ask again."""


@dataclass(frozen=True)
class Health:
    """The lab's state as the manager reports it. `trouble`: the problem in one line, or empty. `epoch`: the number of
    times that the clean proxies were made anew. `recovering`: they are gone and the manager is making them, or it waits
    for Toxiproxy."""

    trouble: str = ""
    epoch: int = 0
    recovering: bool = False


class LaneBroker(Protocol):
    """The seam's interface to the part that carries faults of the wire: the manager behind `Lanes`, or a virtual
    world."""

    down: LabDown | None

    async def request_lane(
        self, call: Call, *, deadline_s: float, occasion: Mapping[str, Any] = FIRST
    ) -> tuple[int, ManagerAnswer]: ...
    def end_call_with_observation(self, row: int, observation: Observation) -> None: ...
    async def has_lost_proxies(self, answer: ManagerAnswer) -> bool: ...
    async def fetch_health(self) -> Health: ...
    def raise_lab_down(self, reason: str) -> None: ...


class Lanes:
    """One run's connection to the manager, for one event loop. `healthy` makes the manager check its clean proxies at
    once."""

    # Each call waits for its answer, so a longer pause than 1 ms would show in the call's time.
    def __init__(
        self, state: Path, run: str, *, clock: Clock, healthy: Callable[[], Awaitable[Health]], poll_s: float = 0.001
    ) -> None:
        self._control, self._state = ControlDatabase(state), state
        self._run, self._clock, self._healthy, self._poll_s = run, clock, healthy, poll_s
        self.down: LabDown | None = None
        """The error once the lab is down. A framework between this and the session may swallow the raised one."""

    async def request_lane(
        self, call: Call, *, deadline_s: float, occasion: Mapping[str, Any] = FIRST
    ) -> tuple[int, ManagerAnswer]:
        """The row of this call and the manager's answer: clear, or armed with an address. Raises LabDown: the manager
        is dead, does not answer, or cannot arm."""
        try:
            row = self._control.request_call_address(self._run, call, deadline_s=deadline_s, occasion=occasion)
            # Two moments: `asked_at` moves on while the manager mends the lab; `start` does not, and bounds the whole.
            asked_at = start = self._clock.monotonic()
            probe_at = asked_at + LATE_S
            while (answer := self._control.get_call_answer(row)) is None:
                await self._clock.sleep_async(self._poll_s)
                now = self._clock.monotonic()
                if now > probe_at:
                    # A manager that says that it mends the lab is given time. One that is silent is not.
                    if (await self.fetch_health()).recovering and now < start + MENDING_S:
                        asked_at = now
                    # Rarer than the first look: the manager checks all its clean proxies for each.
                    probe_at = now + LATE_S * 4
                if now > asked_at + LOST_S:
                    raise self._make_lab_down(f"the proxy manager did not answer for {now - start:.0f} s")
            if answer.state == "failed":
                # A manager that was restarted knows no run, which is a better reason than its failure to arm.
                self._raise_if_run_missing()
                raise self._make_lab_down(answer.error)
        except sqlite3.Error as error:
            raise self._make_lab_down(explain_database_error(self._state, error)) from error
        return row, answer

    def end_call_with_observation(self, row: int, observation: Observation) -> None:
        """Reports the observation of an attempt over its lane."""
        # What a witness of the wire needs, and no reply: that stands in the log.
        fields = {
            "duration_s": round(observation.duration_s, 6),
            "deadline_s": observation.deadline_s,
            "error": observation.error,
            "status": observation.status,
            "bytes": observation.bytes,
        }
        try:
            self._control.mark_call_done(row, fields)
        except sqlite3.Error as error:
            raise self._make_lab_down(explain_database_error(self._state, error)) from error

    async def has_lost_proxies(self, answer: ManagerAnswer) -> bool:
        """Tells if the clean proxies went away under a call that had got this answer. Returns once they stand again.
        Raises LabDown: they do not come back."""
        start = self._clock.monotonic()
        while (health := await self.fetch_health()).recovering:
            if self._clock.monotonic() > start + MENDING_S:
                raise self._make_lab_down(f"the clean proxies have not come back in {MENDING_S:g} s")
            await self._clock.sleep_async(LATE_S / 5)
        # Another number: Toxiproxy lost its proxies after the answer, and the call's connection with them.
        return health.epoch != answer.epoch

    async def fetch_health(self) -> Health:
        """The lab's state as the manager reports it. Raises LabDown: the manager reports trouble, or does not
        answer."""
        health = await self._healthy()
        if health.trouble:
            raise self._make_lab_down(health.trouble)
        try:
            self._raise_if_run_missing()
        except sqlite3.Error as error:
            raise self._make_lab_down(explain_database_error(self._state, error)) from error
        return health

    def _raise_if_run_missing(self) -> None:
        if self._control.get_run_state(self._run)[0] == "missing":
            raise self._make_lab_down(FORGOTTEN)

    def raise_lab_down(self, reason: str) -> None:
        """Raises LabDown and keeps it, since another part of the lab reported that it is broken."""
        raise self._make_lab_down(reason)

    def _make_lab_down(self, reason: str) -> LabDown:
        self.down = LabDown(reason)
        return self.down

    def close(self) -> None:
        self._control.close()
