"""The data comes in crumbs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from chaoslab.dice import Dice
from chaoslab.pipe import Line, Pipe, Signal, Timed
from chaoslab.wire.toxics import Toxic


@dataclass(frozen=True)
class Slicer(Toxic):
    """Chunks are cut to `average_size` ± `size_variation` bytes, each followed by a pause of `delay` microseconds.

    An average of 0 or less cuts nothing.
    """

    average_size: int = 0
    size_variation: int = 0
    delay: int = 0

    def pipe(self, dice: Dice, now: float, *, before: Pipe | None = None) -> Pipe:  # noqa: ARG002
        pause_s = max(0, self.delay) / 1_000_000

        def law(timed: Timed, start: float) -> Iterator[Timed]:
            if isinstance(timed.item, Signal):
                yield Timed(start, timed.item)
                return
            rest = timed.item
            while rest:
                size = self._size(dice) or len(rest)
                yield Timed(start, rest[:size])
                rest = rest[size:]
                start += pause_s
            yield Timed(start, b"")

        return Line(law, since=now)

    def _size(self, dice: Dice) -> int:
        """The next piece's size, never below one byte (0: do not cut)."""
        if self.average_size <= 0:
            return 0
        spread = abs(self.size_variation)
        return max(1, int(dice.between(self.average_size - spread, self.average_size + spread + 1)))
