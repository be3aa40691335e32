"""Schedules the work of connections: when each is due, and how much of it one turn of the loop does. So no connection
holds up the others."""

import asyncio
import itertools
from collections import deque
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import Protocol

# Pieces that leave the toxics in one turn of the loop, over all connections: about half a millisecond on a real
# network.
TURN_PIECES = 64
# Pieces of one connection before the next one gets its share.
SHARE_PIECES = 32
SOON_S = 0.001
"""The `soon_s` of a real loop, whose timers are of milliseconds."""
# The most cancelled alarms that are kept, if fewer still stand.
STALE_MAX = 64


class Worker(Protocol):
    """An object that does a bounded amount of work when it is called."""

    alarm: "Alarm | None"
    ready: bool

    @property
    def needs_precise_timing(self) -> bool:
        """True if it must be called more precisely than a timer fires."""

    def run_due_work(self, limit: float, most: int) -> int:
        """Does about `most` pieces of what is due by `limit`, and asks to be called again for the rest. Returns the
        number done."""


class Alarm:
    """A moment at which a worker is to work. Without a worker it is cancelled."""

    __slots__ = ("number", "when", "worker")

    def __init__(self, due_s: float, number: int, worker: Worker) -> None:
        self.when, self.number = due_s, number
        self.worker: Worker | None = worker

    def __lt__(self, another: "Alarm") -> bool:
        # The number keeps alarms of one moment in the order of asking.
        return (self.when, self.number) < (another.when, another.number)


class WorkerTimer:
    """One timer for many workers, and a queue of those that have work. All calls come from the loop's own thread.
    `now_s` gives the time, on the loop's axis. Nothing is done before it is due, though a timer may fire before that.
    `soon_s`: seconds within which precise work is too near for a timer, and is waited for turn by turn."""

    def __init__(self, now_s: Callable[[], float], *, soon_s: float) -> None:
        self.now_s = now_s
        self._soon_s = soon_s
        self._alarms: list[Alarm] = []
        self._stale = 0
        self._numbers = itertools.count()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_when = 0.0
        self._ready: deque[Worker] = deque()
        self._called = False  # the next turn is scheduled

    def schedule_worker(self, worker: Worker, due_s: float | None) -> None:
        """Schedules the worker for that moment and no other. None cancels it."""
        alarm = worker.alarm
        if alarm is not None:
            if alarm.when == due_s:
                return
            worker.alarm = alarm.worker = None
            # counts a cancelled alarm. Cancelled alarms are removed once they are more than those that stand.
            # `heapq` cannot take an item out of its middle, so a cancelled one stays until there are too many.
            self._stale += 1
            if self._stale > STALE_MAX and self._stale > len(self._alarms) // 2:
                self._alarms = [alarm for alarm in self._alarms if alarm.worker is not None]
                heapify(self._alarms)
                self._stale = 0
        if due_s is None:
            return
        if due_s <= self.now_s() + (self._soon_s if worker.needs_precise_timing else 0.0):
            self._queue_worker(worker)  # turn by turn until it is time, if it is not
            return
        worker.alarm = alarm = Alarm(due_s, next(self._numbers), worker)
        heappush(self._alarms, alarm)
        if self._alarms[0] is alarm:
            self._set_timer()

    def run_or_queue_worker(self, worker: Worker) -> None:
        """Lets the worker work now if none waits for a turn, else when its turn comes."""
        if worker.ready:
            return
        if self._ready:
            self._queue_worker(worker)
        else:
            worker.run_due_work(self.now_s(), SHARE_PIECES)

    def _queue_worker(self, worker: Worker) -> None:
        if worker.ready:
            return
        worker.ready = True
        self._ready.append(worker)
        if not self._called:
            self._called = True
            asyncio.get_running_loop().call_soon(self._run_queued_workers)

    def _set_timer(self) -> None:
        """Sets the timer for the first alarm, unless it fires before that anyway."""
        first = self._alarms[0].when
        if self._timer is not None:
            # One that fires early finds nothing due and is set again, which is cheaper than a timer for each change.
            if self._timer_when <= first:
                return
            self._timer.cancel()
        self._timer_when = first
        self._timer = asyncio.get_running_loop().call_at(first, self._queue_due_workers)

    def _queue_due_workers(self) -> None:
        self._timer = None
        # One moment for all: alarms that come due meanwhile wait for the next ring.
        limit = self.now_s()
        alarms = self._alarms
        # Cancelled ones at the top go, too, or the timer would be set for them.
        while alarms and (alarms[0].when <= limit or alarms[0].worker is None):
            worker = heappop(alarms).worker
            if worker is None:
                self._stale -= 1
                continue
            worker.alarm = None
            if not worker.ready:
                worker.ready = True
                self._ready.append(worker)
        if alarms:
            self._set_timer()
        if self._ready and not self._called:
            self._run_queued_workers()

    def _run_queued_workers(self) -> None:
        """Does a bounded amount of work, one worker after the other; the rest in the next turn of the loop."""
        self._called = True  # workers queued meanwhile wait for the next turn
        room = TURN_PIECES
        limit = self.now_s()
        while self._ready and room > 0:
            worker = self._ready.popleft()
            worker.ready = False
            # At least one for each: a worker that has nothing to do costs its share of the turn too.
            room -= 1 + worker.run_due_work(limit, min(room, SHARE_PIECES))
        self._called = bool(self._ready)
        if self._called:
            asyncio.get_running_loop().call_soon(self._run_queued_workers)
