"""Everything arrives late."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from chaoslab.base.dice import Dice
from chaoslab.core.pipe import PacedQueue, Pipe, Signal, Timed
from chaoslab.wire.toxics import Toxic

# Bytes in flight, as in Toxiproxy (1024 chunks of 32 KB). Fewer would throttle a fast stream with a long latency.
ROOM_BYTES = 32 * 1024 * 1024
# Seconds by which a timer may fire early. A client answered then may ask again before the answer was due.
EARLY_S = 0.001


@dataclass(frozen=True)
class Latency(Toxic):
    """Delays each chunk by `latency` ± `jitter` milliseconds, in order. The end of the stream is not delayed."""

    UNITS: ClassVar = {"delay_s": ("latency", 1000)}
    latency: int = 0
    jitter: int = 0

    def pipe(self, dice: Dice, now: float, *, before: Pipe | None = None) -> Pipe:  # noqa: ARG002
        walk = _JitterWalk(abs(self.jitter) / 1000, dice)
        late_s, jitters = self.latency / 1000, self.jitter != 0

        def schedule_item(timed: Timed, start: float) -> Iterable[Timed]:
            at, item = timed
            if item.__class__ is Signal:
                return (Timed(start, item),)
            due = at + late_s
            # No draw without jitter, so that the dice of a toxic that has some are its own.
            if jitters:
                due += walk.get_jitter(at, idle=at >= start - EARLY_S)
            # Never before the item ahead of it: TCP keeps the order of bytes.
            return (Timed(due if due > start else start, item),)

        # Straight: a chain need not feed it anything while it delays nothing.
        return PacedQueue(
            schedule_item, since=now, straight=self.latency <= 0 and not jitters, capacity_bytes=ROOM_BYTES
        )


class _JitterWalk:
    """Jitter that is drawn anew for a chunk that finds none waiting. It never lets a chunk overtake an earlier one.

    A request that follows the answer before it is delayed by a uniform draw of its own, as in Toxiproxy. If chunks come
    faster than they leave, a draw for each would make every chunk wait for the slowest before it, and the mean would
    grow. Such chunks share draws that are 2 × jitter apart in time and joined by straight lines, whose slope is at
    least −1. So no chunk is due before an earlier one, and the mean stays 0. After a gap of two such steps (4 × jitter)
    a chunk gets a fresh draw.
    """

    def __init__(self, jitter_s: float, dice: Dice) -> None:
        self._jitter_s = jitter_s
        self._step_s = 2 * jitter_s
        self._dice = dice
        self._knot_at: float | None = None
        self._here: float  # drawn with the first knot
        self._there: float | None = None  # drawn when it is asked for

    def get_jitter(self, moment: float, *, idle: bool) -> float:
        """The jitter (s) of a chunk that arrives at that moment. `idle`: no chunk is waiting. Moments must not fall."""
        if idle or self._knot_at is None or moment >= self._knot_at + 2 * self._step_s:
            self._knot_at, self._here, self._there = moment, self._draw_jitter(), None
            return self._here
        if self._there is None:
            self._there = self._draw_jitter()
        if moment >= self._knot_at + self._step_s:
            self._knot_at, self._here, self._there = self._knot_at + self._step_s, self._there, self._draw_jitter()
        share = (moment - self._knot_at) / self._step_s
        # The slope is never below -1, so no chunk is due before one that came earlier.
        return self._here + (self._there - self._here) * share

    def _draw_jitter(self) -> float:
        return self._dice.draw_between(-self._jitter_s, self._jitter_s)
