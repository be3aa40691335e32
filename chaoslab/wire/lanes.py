"""The seam's side of the wire: asks the proxy manager which address an attempt goes to, and tells it what became of it."""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from chaoslab.base.clock import Clock
from chaoslab.core.exchange import Call, Observation
from chaoslab.wire.control import Answer, Control, explain

LATE_S = 0.25
"""An answer that takes longer makes the seam ask after the manager's health."""
LOST_S = 10.0
"""A healthy manager that does not answer for so long is taken for broken."""
MENDING_S = 20.0
"""How long a manager may say that it mends the lab; by itself it gives up sooner."""
FORGOTTEN = "the proxy manager was restarted and has forgotten this run"


class LabDown(BaseException):
    """The manager or Toxiproxy is gone: nothing that happens from here on would be an experiment.

    No `Exception`, since an SDK would take it for one more network error and retry it.
    """


@dataclass(frozen=True)
class Health:
    """What the manager says of the lab. `trouble`: empty when all is well, else what is wrong in a line; `epoch`: how often the
    clean proxies were made anew; `recovering`: they are not there at the moment and the manager is at it, or it waits for Toxiproxy."""

    trouble: str = ""
    epoch: int = 0
    recovering: bool = False


class LaneBroker(Protocol):
    """What the seam needs of whoever carries the faults of the wire: the manager behind its `Lanes`, or a world of its own."""

    down: LabDown | None

    async def ask(self, call: Call, *, deadline_s: float) -> tuple[int, Answer]: ...
    def done(self, row: int, seen: Observation) -> None: ...
    async def cut(self, answer: Answer) -> bool: ...
    async def check(self) -> Health: ...
    def give_up(self, why: str) -> None: ...
    def close(self) -> None: ...


class Lanes:
    """One run's door to the manager, for one event loop. `healthy` has the manager look at its clean proxies there and then."""

    def __init__(
        self, state: Path, run: str, *, clock: Clock, healthy: Callable[[], Awaitable[Health]], poll_s: float = 0.001
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
            asked = began = self._clock.monotonic()
            probe_at = asked + LATE_S
            while (answer := self._control.answer(row)) is None:
                await self._clock.asleep(self._poll_s)
                now = self._clock.monotonic()
                if now > probe_at:
                    if (await self.check()).recovering and now < began + MENDING_S:
                        asked = now
                    probe_at = now + LATE_S * 4
                if now > asked + LOST_S:
                    raise self._down(f"the proxy manager did not answer for {now - began:.0f} s")
            if answer.state == "failed":
                self._known()
                raise self._down(answer.error)
        except sqlite3.Error as error:
            raise self._down(explain(self._state, error)) from error
        return row, answer

    def done(self, row: int, seen: Observation) -> None:
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

    async def cut(self, answer: Answer) -> bool:
        """Whether the clean proxies went away under a call that had got this answer; returns once they stand again.

        Raises:
            LabDown: they do not come back.
        """
        began = self._clock.monotonic()
        while (health := await self.check()).recovering:
            if self._clock.monotonic() > began + MENDING_S:
                raise self._down(f"the clean proxies have not come back in {MENDING_S:g} s")
            await self._clock.asleep(LATE_S / 5)
        return health.epoch != answer.epoch

    async def check(self) -> Health:
        """What the manager says of the lab.

        Raises:
            LabDown: that something is wrong, or nothing at all.
        """
        health = await self._healthy()
        if health.trouble:
            raise self._down(health.trouble)
        try:
            self._known()
        except sqlite3.Error as error:
            raise self._down(explain(self._state, error)) from error
        return health

    def _known(self) -> None:
        if self._control.run_state(self._run)[0] == "missing":
            raise self._down(FORGOTTEN)

    def give_up(self, why: str) -> None:
        """Raises LabDown, and remembers it: another part of the lab has said that it is broken."""
        raise self._down(why)

    def _down(self, why: str) -> LabDown:
        self.down = LabDown(why)
        return self.down

    def close(self) -> None:
        self._control.close()
