"""The seam's side of outages: asks the supervisor to stop a service's process, and knows when it is back."""

import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from chaoslab.base.clock import Clock
from chaoslab.wire.control import Control, explain

STOPPED_S = 60.0
"""Seconds in which a supervisor stops a process, in a container too."""
BACK_S = 60.0
"""Seconds in which a process that was killed answers again."""
POLL_S, POLL_SHARE = 0.005, 0.01
"""The least wait between two looks, and its share of the time waited so far."""


class NotStopped(Exception):
    """Nobody could stop the process, or it did not come back; one line has the reason."""


class OutageRequests:
    """One run's requests to its supervisor, for one event loop."""

    def __init__(self, state: Path, run: str, *, clock: Clock) -> None:
        self._control, self._state, self._run, self._clock = Control(state), state, run, clock

    async def stop(self, service: str, how: str, *, for_s: float, fault: Mapping[str, Any]) -> int:
        """Returns the outage's number once the process is killed or paused. Raises NotStopped: it could not be, or
        nobody answers."""
        try:
            row = self._control.ask_outage(self._run, service, how, for_s=for_s, fault=fault)
            state = await self._left(row, "asked", STOPPED_S)
        except sqlite3.Error as error:
            raise NotStopped(explain(self._state, error)) from error
        if state == "asked":
            raise NotStopped(
                f"nobody stops the process of {service} here: start the lab with `chaoslab lab`, which supervises it"
            )
        return row

    def is_over(self, row: int) -> bool:
        """True if the process answers again. Raises NotStopped: it does not come back."""
        try:
            return self._state_of(row) == "over"
        except sqlite3.Error as error:
            raise NotStopped(explain(self._state, error)) from error

    async def end(self, rows: list[int]) -> None:
        """Ends these outages, and returns once the processes answer. Raises NotStopped: one does not."""
        try:
            self._control.end_outages(self._run)
            for row in rows:
                if await self._left(row, "stopped", BACK_S) == "stopped":
                    raise NotStopped("a service whose process was stopped does not answer again")
        except sqlite3.Error as error:
            raise NotStopped(explain(self._state, error)) from error

    async def _left(self, row: int, state: str, within_s: float) -> str:
        """The state that comes after this one, or this one if it lasts longer."""
        began_s = self._clock.monotonic()
        while (found := self._state_of(row)) == state:
            if (waited_s := self._clock.monotonic() - began_s) >= within_s:
                break
            await self._clock.asleep(max(POLL_S, POLL_SHARE * waited_s))
        return found

    def _state_of(self, row: int) -> str:
        state, error = self._control.outage_state(row)
        if state == "failed":
            raise NotStopped(error)
        return state

    def close(self) -> None:
        self._control.close()
