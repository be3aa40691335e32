"""Everything arrives, late."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from chaoslab.dice import Dice
from chaoslab.pipe import Line, Pipe, Signal, Timed
from chaoslab.wire.toxics import Toxic


@dataclass(frozen=True)
class Latency(Toxic):
    """Each chunk leaves `latency` ± `jitter` milliseconds after it came, in order; the end of the stream is not delayed."""

    latency: int = 0
    jitter: int = 0

    def pipe(self, dice: Dice, now: float, *, before: Pipe | None = None) -> Pipe:  # noqa: ARG002
        walk = _Walk(abs(self.jitter) / 1000, dice)

        def law(timed: Timed, start: float) -> Iterator[Timed]:
            if isinstance(timed.item, Signal):
                yield Timed(start, timed.item)
            else:
                yield Timed(max(start, timed.at + self.latency / 1000 + walk.at(timed.at)), timed.item)

        return Line(law, since=now)


class _Walk:
    """Jitter that never lets a chunk overtake the one before, so that keeping the order does not inflate it.

    A draw of its own for each chunk would make every chunk wait for the slowest before it. Here draws are 2 × jitter apart
    and joined by straight lines, whose slope is at least −1: no chunk is due before an earlier one, and the mean stays 0.
    After a gap of two such steps (4 × jitter) a chunk gets a fresh draw.
    """

    def __init__(self, jitter_s: float, dice: Dice) -> None:
        self._jitter_s = jitter_s
        self._step_s = 2 * jitter_s
        self._dice = dice
        self._knot_at: float | None = None
        self._here = self._there = 0.0

    def at(self, moment: float) -> float:
        """The jitter (s) of what arrives at that moment; moments must not fall."""
        if self._jitter_s == 0:
            return 0.0
        if self._knot_at is None or moment >= self._knot_at + 2 * self._step_s:
            self._knot_at, self._here, self._there = moment, self._draw(), self._draw()
        elif moment >= self._knot_at + self._step_s:
            self._knot_at, self._here, self._there = self._knot_at + self._step_s, self._there, self._draw()
        share = (moment - self._knot_at) / self._step_s
        return self._here + (self._there - self._here) * share

    def _draw(self) -> float:
        return self._dice.between(-self._jitter_s, self._jitter_s)
