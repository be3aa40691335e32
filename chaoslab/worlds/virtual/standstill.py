"""Steps that take no time, counted: a loop of them would go on for ever, since nothing else moves a machine's clock.

On a real computer time would pass meanwhile. So when there were too many, the clock moves to what is due next, and each time fewer
are too many; where nothing is due, the trial ends as hung.
"""

from __future__ import annotations

from asyncio import _get_running_loop
from typing import TYPE_CHECKING, Any

from greenlet import getcurrent

from chaoslab.worlds.virtual.context import own_line

if TYPE_CHECKING:
    from chaoslab.worlds.virtual.machine import Machine, Wait

TURNS_MAX = 100_000
"""Waits of no time at all, and tries without a wait, while the clock stands still."""
LOOKS_MAX = 300_000
"""Looks at the clock, and locks taken."""
SLICES = 10
"""A step is counted when its slice is used up, a tenth of what is allowed, so that one costs next to nothing."""
FEWEST = 1000
"""At least a thousandth is allowed: others take such steps too, who are no loop."""
NEAR_S = 0.001
"""Requests over the network take a few trips of 50 µs each: those closer than this follow one another without any wait."""


class Pace:
    """Counts steps of one kind on one machine. `most`: so many may follow each other while the clock stands still; `near_s`: a clock that
    moves by no more than this between two steps stands still."""

    def __init__(self, machine: Machine, most: int, *, near_s: float = 0.0) -> None:
        self._machine, self._most, self._near_s = machine, most, near_s
        self.renew()

    def renew(self) -> None:
        """Begins anew, with all that is allowed."""
        self.allowed, self.count, self._granted, self._left = self._most, 0, 0, 0
        self._at, self._moved_to = self._machine.now, -1.0

    def too_many(self, steps: int = 1) -> bool:
        """Counts so many steps, taken since the last count; whether there are more than are allowed by now."""
        now = self._machine.now
        if now - self._at <= self._near_s:
            self.count += steps
        else:
            self.count = 0
            if now != self._moved_to:
                self.allowed = self._most
        self._at = now
        return self.count >= self.allowed

    def moved(self, until: float) -> None:
        """The clock was moved to that moment for the sake of these steps: that is no wait, and fewer are allowed from now on."""
        self.allowed, self.count = max(1, self._most // FEWEST, self.allowed // 2), 0
        self._at = self._moved_to = until

    def step(self, doing: str, unit: str) -> None:
        """One step, where nobody else keeps count of what is granted."""
        self._left -= 1
        if self._left < 0:
            self._left = self.grant(doing, unit) - 1

    def grant(self, doing: str, unit: str) -> int:
        """So many steps may be taken before this is asked again, the one at hand among them. Called by whoever takes them, in its thread.

        `doing` and `unit`: in words what one does by them, and what they are.
        """
        machine = self._machine
        if getcurrent() is machine.hub:  # the machine's own work, which is no loop
            return self._most
        if self.too_many(self._granted):
            self._stand_still(doing, unit)
        elif self.count * 2 >= self.allowed:  # whoever else has something to do may be what this waits for
            machine.pass_turn()
        self._granted = max(1, min(self._most // SLICES, self.allowed))
        return self._granted

    def _stand_still(self, doing: str, unit: str) -> None:
        """The calling thread goes on when something else has happened. Where nothing will, the run ends here, with the program's own line."""
        machine = self._machine
        until = machine.next_due() if machine.in_thread() else None
        if until is None:
            where = own_line() or "the agent"
            machine.end(f"{where} {doing} again and again and no time passes ({self.count:,} {unit})")
        self.moved(until)
        machine.wait(f"a loop that {doing}", until)


class Steps:
    """All that is counted on one machine."""

    def __init__(self, machine: Machine, calls_max: int) -> None:
        self._machine = machine
        self.calls, self.requests = Pace(machine, calls_max), Pace(machine, calls_max, near_s=NEAR_S)
        self.looks, self.locks = Pace(machine, LOOKS_MAX), Pace(machine, LOOKS_MAX)
        self.tries, self._turns = Pace(machine, TURNS_MAX), Pace(machine, TURNS_MAX)

    def renew(self) -> None:
        """Begins anew."""
        for pace in (self.calls, self.requests, self.looks, self.locks, self.tries, self._turns):
            pace.renew()

    def polled(self, what: Wait) -> float:
        """Until when the calling thread's wait of no time lasts: now, but until something happens if there was one too many. Where nothing
        will, the run ends here."""
        machine = self._machine
        if not self._turns.too_many():
            return machine.now
        until = machine.next_due()
        if until is None:
            machine.end(f"it would turn for ever: {TURNS_MAX} turns without any time passing, and nothing is due", what)
        self._turns.moved(until)
        return until

    def requested(self, whom: str) -> None:
        """Somebody is asked for something over the network. That takes a little time, but a loop of it is no wait."""
        if self.requests.too_many():
            count = f"{self.requests.count:,} requests, less than {NEAR_S * 1000:g} ms apart"
            self._machine.end_soon(f"{whom} is asked again and again without a wait ({count})")


def due_in_loop(now: float) -> list[float]:
    """The timers of the event loop that runs in this thread: the machine learns of them only when the loop waits."""
    loop: Any = _get_running_loop()
    scheduled = getattr(loop, "_scheduled", ())
    return [handle._when for handle in scheduled if not handle._cancelled and handle._when > now]
