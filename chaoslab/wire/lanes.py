"""The seam's side of the wire: asks the proxy manager which address an attempt goes to, and tells it what became of it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

from chaoslab.clock import Clock
from chaoslab.exchange import Call, Seen
from chaoslab.wire.control import Answer, Control, explain

LATE_S = 0.25
"""An answer that takes longer makes the seam ask after the manager's health."""
LOST_S = 10.0
"""A healthy manager that does not answer for so long is taken for broken."""


class LabDown(BaseException):
    """The manager or Toxiproxy is gone: nothing that happens from here on would be an experiment.

    No `Exception`, since an SDK would take it for one more network error and retry it.
    """


class Lanes:
    """One run's door to the manager, for one event loop.

    `healthy` asks the manager's /health: "" when all is well, else what is wrong in a line.
    """

    def __init__(
        self, state: Path, run: str, *, clock: Clock, healthy: Callable[[], str], poll_s: float = 0.001
    ) -> None:
        self._control, self._state = Control(state), state
        self._run, self._clock, self._healthy, self._poll_s = run, clock, healthy, poll_s
        self.down: LabDown | None = None
        """Why the lab is down, once it is: a framework between here and the session may swallow what was raised."""

    async def ask(self, call: Call, *, deadline_s: float) -> tuple[int, Answer]:
        """The row of this call and the manager's answer: clear, or armed with an address.

        Raises:
            LabDown: the manager is dead, does not answer, or cannot arm.
        """
        try:
            row = self._control.ask(self._run, call, deadline_s=deadline_s)
            asked = self._clock.monotonic()
            probe_at = asked + LATE_S
            while (answer := self._control.answer(row)) is None:
                await self._clock.asleep(self._poll_s)
                now = self._clock.monotonic()
                if now > probe_at:
                    self.check()
                    probe_at = now + LATE_S * 4
                if now > asked + LOST_S:
                    raise self._down(f"the proxy manager did not answer for {LOST_S:g} s")
        except sqlite3.Error as error:
            raise self._down(explain(self._state, error)) from error
        if answer.state == "failed":
            raise self._down(answer.error)
        return row, answer

    def done(self, row: int, seen: Seen) -> None:
        """The attempt over its lane is over, and this is what was observed."""
        observation = {
            "duration_s": round(seen.duration_s, 6),
            "deadline_s": seen.deadline_s,
            "error": seen.error,
            "status": seen.status,
            "bytes": seen.bytes,
        }
        try:
            self._control.done(row, observation)
        except sqlite3.Error as error:
            raise self._down(explain(self._state, error)) from error

    def check(self) -> None:
        """Raises LabDown when the manager says that something is wrong, or says nothing."""
        trouble = self._healthy()
        if trouble:
            raise self._down(trouble)

    def give_up(self, why: str) -> None:
        """Raises LabDown, and remembers it: another part of the lab has said that it is broken."""
        raise self._down(why)

    def _down(self, why: str) -> LabDown:
        self.down = LabDown(why)
        return self.down

    def close(self) -> None:
        self._control.close()
