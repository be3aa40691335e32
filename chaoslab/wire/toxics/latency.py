"""Everything arrives, late."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from chaoslab.base.dice import Dice
from chaoslab.core.pipe import Line, Pipe, Signal, Timed
from chaoslab.wire.toxics import Toxic

ROOM_BYTES = (
    32 * 1024 * 1024
)  # less would throttle a fast stream with a long latency; Toxiproxy keeps 1024 chunks of 32 KB
EARLY_S = (
    0.001  # a timer may ring a little before its time, and who was answered then asks again before the answer was due
)


@dataclass(frozen=True)
class Latency(Toxic):
    """Each chunk leaves `latency` ± `jitter` milliseconds after it came, in order; the end of the stream is not delayed."""

    UNITS: ClassVar = {"delay_s": ("latency", 1000)}
    latency: int = 0
    jitter: int = 0

    def pipe(self, dice: Dice, now: float, *, before: Pipe | None = None) -> Pipe:  # noqa: ARG002
        walk = _Walk(abs(self.jitter) / 1000, dice)
        late_s, jitters = self.latency / 1000, self.jitter != 0

        def law(timed: Timed, start: float) -> Iterable[Timed]:
            at, item = timed
            if item.__class__ is Signal:
                return (Timed(start, item),)
            due = at + late_s
            if jitters:
                due += walk.at(at, idle=at >= start - EARLY_S)
            return (Timed(due if due > start else start, item),)

        return Line(law, since=now, straight=self.latency <= 0 and not jitters, room_bytes=ROOM_BYTES)


class _Walk:
    """Jitter that is drawn anew for whoever finds nobody waiting, and that never lets a chunk overtake the one before.

    A request that waits for the answer before is delayed by a uniform draw of its own, as in Toxiproxy. Where chunks follow each
    other more quickly than they leave, a draw for each would make every chunk wait for the slowest before it, and the mean would
    grow. Such chunks share draws that are 2 × jitter apart in time and joined by straight lines, whose slope is at least −1: no
    chunk is due before an earlier one, and the mean stays 0. After a gap of two such steps (4 × jitter) a chunk gets a fresh draw.
    """

    def __init__(self, jitter_s: float, dice: Dice) -> None:
        self._jitter_s = jitter_s
        self._step_s = 2 * jitter_s
        self._dice = dice
        self._knot_at: float | None = None
        self._here: float  # drawn with the first knot
        self._there: float | None = None  # drawn when it is asked for

    def at(self, moment: float, *, idle: bool) -> float:
        """The jitter (s) of what arrives at that moment, and finds nothing waiting if `idle`; moments must not fall."""
        if idle or self._knot_at is None or moment >= self._knot_at + 2 * self._step_s:
            self._knot_at, self._here, self._there = moment, self._draw(), None
            return self._here
        if self._there is None:
            self._there = self._draw()
        if moment >= self._knot_at + self._step_s:
            self._knot_at, self._here, self._there = self._knot_at + self._step_s, self._there, self._draw()
        share = (moment - self._knot_at) / self._step_s
        return self._here + (self._there - self._here) * share

    def _draw(self) -> float:
        return self._dice.between(-self._jitter_s, self._jitter_s)
