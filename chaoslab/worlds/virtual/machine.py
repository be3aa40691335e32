"""The machine that a trial runs on: a clock that jumps, threads that take turns, and nothing that waits for real.

A thread of the machine (`Strand`) is a greenlet. One runs at a time, until it waits; then the machine runs whatever is due at this
moment, and when nothing is, it moves its clock to the next moment at which something will be. So order depends on nothing but
what the threads do, and a wait of an hour costs as much as one of a millisecond. With nothing due and nothing to come the
threads that are left would wait for ever: that is found there and then.
"""

from __future__ import annotations

import heapq
import itertools
from _thread import get_ident
from asyncio import _get_running_loop, _set_running_loop
from collections import deque
from collections.abc import Callable
from sys import get_asyncgen_hooks, set_asyncgen_hooks
from typing import Any, Protocol

from greenlet import GreenletExit, getcurrent, greenlet

from chaoslab.worlds.virtual.here import Uncovered

STARTS_S = 100_000.0
"""What the monotonic clock says at first: a machine that has been up for a day, so that nobody takes the time for unset."""
SPINS_MAX = 100_000
"""Turns of an event loop without any time passing, after which it is taken to turn for ever."""


class Hung(Exception):
    """The trial would never end: says why, and who waits for what, one line each."""

    def __init__(self, why: str, waiting: list[str]) -> None:
        super().__init__("\n".join([why, *waiting]))
        self.why, self.waiting = why, waiting

    def __reduce__(self) -> tuple[Any, ...]:
        return Hung, (self.why, self.waiting)


class Reporter(Protocol):
    """Something a thread waits in that can say more than the thread itself, such as an event loop with its tasks."""

    def waiting(self) -> list[str]: ...


class Timer:
    """Something due at a moment."""

    __slots__ = ("args", "call", "cancelled", "when")

    def __init__(self, when: float, call: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.when, self.call, self.args, self.cancelled = when, call, args, False

    def cancel(self) -> None:
        self.cancelled = True
        self.args = ()


class Strand(greenlet):
    """One thread of the machine. `waits_for`: in what it is parked."""

    def __init__(self, work: Callable[[], Any], ident: int, name: str) -> None:
        super().__init__(work)
        self.ident, self.name = ident, name
        self.waits_for: str | Reporter = "its first turn"


class Waiter:
    """One wait of one thread, which whoever holds this may end, once."""

    __slots__ = ("_over", "_woken", "machine", "strand")

    def __init__(self, machine: Machine) -> None:
        strand = getcurrent()
        if not isinstance(strand, Strand):
            raise RuntimeError("the machine itself cannot wait: only its threads can")
        self.machine, self.strand = machine, strand
        self._over = self._woken = False

    def wake(self) -> None:
        """Ends the wait; the thread goes on in its turn."""
        if not self._over:
            self.machine.own_thread()
            self._over = self._woken = True
            self.machine.soon(self._resume)

    def park(self, what: str | Reporter, until: float | None = None) -> bool:
        """Waits; whether it was woken before that moment."""
        machine = self.machine
        if self._over:
            return True
        if until is not None and machine.is_idle_until(until):
            machine.now = max(machine.now, until)
            self._over = True
            return False
        timer = None if until is None else machine.at(until, self._expire)
        self.strand.waits_for = what
        loop, hooks = _get_running_loop(), get_asyncgen_hooks()
        _set_running_loop(None)
        try:
            machine.hub.switch()
        finally:
            self._over = True
            _set_running_loop(loop)
            set_asyncgen_hooks(*hooks)
            if timer is not None:
                timer.cancel()
        return self._woken

    def _expire(self) -> None:
        if not self._over:
            self._over = True
            self._resume()

    def _resume(self) -> None:
        self.strand.switch()


class Machine:
    """`deadline_s` bounds how much of its time may pass. Not for use from another thread of the process."""

    def __init__(self, *, deadline_s: float) -> None:
        self.now = STARTS_S
        self.deadline = STARTS_S + deadline_s
        self.hub: greenlet = getcurrent()
        self._timers: list[tuple[float, int, Timer]] = []
        self._ready: deque[tuple[Callable[..., Any], tuple[Any, ...]]] = deque()
        self._order = itertools.count()
        self._idents = itertools.count(1_000_001)
        self._strands: dict[int, Strand] = {}
        self._os_thread = get_ident()
        self.foreign: Uncovered | None = None

    def own_thread(self) -> None:
        """Only the thread of the process that runs this machine may touch it: when another would, is nobody's to say.

        Raises:
            Uncovered: it is another; the run ends with this too.
        """
        if get_ident() != self._os_thread:
            error = self.foreign = Uncovered(
                "a thread of the process that runs no world of its own", "do without the library that starts it"
            )
            self._ready.appendleft((_end_with, (error,)))
            raise error

    # What is due.

    def at(self, when: float, call: Callable[..., Any], *args: Any) -> Timer:
        """Things due at one moment happen in the order in which they were asked for."""
        timer = Timer(when, call, args)
        heapq.heappush(self._timers, (when, next(self._order), timer))
        return timer

    def after(self, delay_s: float, call: Callable[..., Any], *args: Any) -> Timer:
        return self.at(self.now + delay_s, call, *args)

    def soon(self, call: Callable[..., Any], *args: Any) -> None:
        self._ready.append((call, args))

    def is_idle_until(self, when: float) -> bool:
        """Whether nothing happens before or at that moment, so that a lone thread may be moved there without a switch."""
        timers = self._timers
        while timers and timers[0][2].cancelled:
            heapq.heappop(timers)
        return not self._ready and (not timers or timers[0][0] > when) and when <= self.deadline

    # Threads.

    def start(self, work: Callable[[], Any], *, name: str) -> Strand:
        """A thread that begins in its turn. What `work` raises ends the run."""
        strand = Strand(lambda: self._work(work, strand), next(self._idents), name)
        strand.parent = self.hub
        self._strands[strand.ident] = strand
        self.soon(strand.switch)
        return strand

    def _work(self, work: Callable[[], Any], strand: Strand) -> None:
        set_asyncgen_hooks(None, None)
        try:
            work()
        except GreenletExit:
            pass
        finally:
            _set_running_loop(None)
            del self._strands[strand.ident]

    def sleep(self, delay_s: float) -> None:
        """The calling thread's `time.sleep`."""
        Waiter(self).park(f"time.sleep({delay_s:g})", self.now + delay_s)

    def pass_turn(self) -> None:
        """Lets everything happen that is due at this moment before the calling thread goes on."""
        if self._ready:
            waiter = Waiter(self)
            self.soon(waiter.wake)
            waiter.park("its next turn")

    # The run.

    def run(self, work: Callable[[], Any], *, name: str) -> None:
        """Runs this as a thread until it is over, and all others meanwhile.

        Raises:
            Hung: it would never be, or not before the deadline.
        """
        main = self.start(work, name=name)
        ready, timers = self._ready, self._timers
        while not main.dead:
            if ready:
                call, args = ready.popleft()
                call(*args)
            elif timers:
                when, _, timer = heapq.heappop(timers)
                if timer.cancelled:
                    continue
                if when > self.deadline:
                    allowed, self.now = self.deadline - STARTS_S, self.deadline
                    raise Hung(f"not over after {allowed:g} s of virtual time", self.waiting())
                self.now = max(self.now, when)
                timer.call(*timer.args)
            else:
                raise Hung("nothing is ready and nothing is due: it would wait for ever", self.waiting())

    def waiting(self) -> list[str]:
        """Who waits for what, one line each."""
        lines: list[str] = []
        for strand in self._strands.values():
            what = strand.waits_for
            if isinstance(what, str):
                lines.append(f"{strand.name} waits in {what}{_place(strand)}")
            else:
                lines += [f"{strand.name}: {line}" for line in what.waiting()] or [f"{strand.name}: {_place(strand)}"]
        return lines

    def _wind_down(self) -> None:
        """What a thread that was told to end still does about it, such as ending its tasks."""
        for _ in range(SPINS_MAX):
            if not self._ready:
                return
            call, args = self._ready.popleft()
            call(*args)

    def stop(self) -> None:
        """Ends every thread that is left, where it stands. One that will not end is left behind, and said."""
        for strand in list(self._strands.values()):
            for _ in range(100):
                if strand.dead:
                    break
                strand.throw(GreenletExit)
                self._wind_down()
        self._ready.clear()
        self._timers.clear()


def _end_with(error: BaseException) -> None:
    raise error


def _place(strand: Strand) -> str:
    """Where in its own code a parked thread stands."""
    frame = strand.gr_frame
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if not module.startswith(("chaoslab.worlds.virtual", "threading", "queue", "concurrent.", "asyncio")):
            return f", called in {module}.{frame.f_code.co_name}, line {frame.f_lineno}"
        frame = frame.f_back
    return ""
