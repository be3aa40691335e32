"""Who has something due when, and how much of it is done in one turn of the loop: no connection holds up the others."""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import Protocol

TURN_PIECES = 64
"""So many pieces leave the toxics in one turn of the loop, over all connections; on a real network about half a millisecond's worth."""
SHARE_PIECES = 32
"""So many of them of one connection, before the next one gets its share."""
SOON_S = 0.001
"""What is due within this cannot wait for a timer of milliseconds, if it has to be precise."""
STALE_MAX = 64
"""So many alarms that were called off may be kept, beside as many as still stand."""


class Worker(Protocol):
    """Somebody who does a bounded amount of work when told."""

    alarm: Alarm | None
    ready: bool

    @property
    def hurried(self) -> bool:
        """Whether it needs to be called more precisely than a timer rings."""

    def work(self, limit: float, most: int) -> int:
        """Does what is due by then, about `most` pieces of it, and says how many; asks to be called again for what is left."""


class Alarm:
    """A moment at which a worker is to work; without a worker it was called off."""

    __slots__ = ("number", "when", "worker")

    def __init__(self, when: float, number: int, worker: Worker) -> None:
        self.when, self.number = when, number
        self.worker: Worker | None = worker

    def __lt__(self, other: Alarm) -> bool:
        return (self.when, self.number) < (other.when, other.number)


class Turns:
    """One timer for many workers, and a queue of those that have work. All calls come from the loop's own thread.

    `now_s` tells the time, on the loop's axis. `slack_s`: how much earlier than due the timer rings, and what is due by then is
    done with it; a real selector wakes up to 1 ms late, and waking half of that early centres the error.
    """

    def __init__(self, now_s: Callable[[], float], *, slack_s: float) -> None:
        self.now_s = now_s
        self.slack_s = slack_s
        self._alarms: list[Alarm] = []
        self._stale = 0
        self._numbers = itertools.count()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_when = 0.0
        self._ready: deque[Worker] = deque()
        self._called = False  # the next turn is asked for

    def call(self, worker: Worker, when: float | None) -> None:
        """That worker is to work at that moment, and at no other; None calls it off."""
        alarm = worker.alarm
        if alarm is not None:
            if alarm.when == when:
                return
            worker.alarm = alarm.worker = None
            self._forget_one()
        if when is None:
            return
        soon_s = SOON_S if worker.hurried and self.slack_s else self.slack_s
        if when <= self.now_s() + soon_s:
            self._queue(worker)  # turn by turn until it is time, if it is not
            return
        worker.alarm = alarm = Alarm(when, next(self._numbers), worker)
        heappush(self._alarms, alarm)
        if self._alarms[0] is alarm:
            self._set_timer()

    def at_once(self, worker: Worker) -> None:
        """That worker has something to do: now, if nobody waits for a turn, else when its turn comes."""
        if worker.ready:
            return
        if self._ready:
            self._queue(worker)
        else:
            worker.work(self.now_s() + self.slack_s, SHARE_PIECES)

    def _queue(self, worker: Worker) -> None:
        if worker.ready:
            return
        worker.ready = True
        self._ready.append(worker)
        if not self._called:
            self._called = True
            asyncio.get_running_loop().call_soon(self._turn)

    def _forget_one(self) -> None:
        """Alarms that were called off are left where they are, until they are more than those that still stand."""
        self._stale += 1
        if self._stale > STALE_MAX and self._stale > len(self._alarms) // 2:
            self._alarms = [alarm for alarm in self._alarms if alarm.worker is not None]
            heapify(self._alarms)
            self._stale = 0

    def _set_timer(self) -> None:
        """For the first alarm, unless the timer rings before that anyway."""
        first = self._alarms[0].when
        if self._timer is not None:
            if self._timer_when <= first:
                return
            self._timer.cancel()
        self._timer_when = first
        self._timer = asyncio.get_running_loop().call_at(first - self.slack_s, self._ring)

    def _ring(self) -> None:
        self._timer = None
        limit = self.now_s() + self.slack_s
        alarms = self._alarms
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
            self._turn()

    def _turn(self) -> None:
        """A bounded amount of work, one worker after the other; the rest in the next turn of the loop."""
        self._called = True  # what is queued meanwhile waits for the next turn
        left = TURN_PIECES
        limit = self.now_s() + self.slack_s
        while self._ready and left > 0:
            worker = self._ready.popleft()
            worker.ready = False
            left -= 1 + worker.work(limit, min(left, SHARE_PIECES))
        self._called = bool(self._ready)
        if self._called:
            asyncio.get_running_loop().call_soon(self._turn)
