"""The data comes in small pieces."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from chaoslab.base.dice import Dice
from chaoslab.core.pipe import PacedQueue, Pipe, Signal, Timed
from chaoslab.wire.toxics import Toxic


@dataclass(frozen=True)
class Slicer(Toxic):
    """Halves chunks, ± `size_variation` bytes, until no piece exceeds `average_size` by more than that.

    A pause of `delay` microseconds follows each piece. An average of 0 or less cuts nothing.
    """

    UNITS: ClassVar = {
        "average_bytes": ("average_size", 1), "variation_bytes": ("size_variation", 1), "pause_s": ("delay", 1_000_000),
    }  # fmt: skip
    average_size: int = 0
    size_variation: int = 0
    delay: int = 0

    def pipe(self, dice: Dice, now: float, *, before: Pipe | None = None) -> Pipe:  # noqa: ARG002
        # Toxiproxy counts this one in microseconds, unlike all others.
        piece_interval_s = max(0, self.delay) / 1_000_000

        def schedule_pieces(timed: Timed, start: float) -> Iterator[Timed]:
            if isinstance(timed.item, Signal):
                yield Timed(start, timed.item)
            else:
                begin = 0
                for size in self._iterate_sizes(len(timed.item), dice):
                    yield Timed(start, timed.item[begin : begin + size])
                    begin += size
                    start += piece_interval_s
                # An empty piece is a pause for the line, so the next chunk comes after the last pause too.
                yield Timed(start, b"")

        straight = self.average_size <= 0 and not piece_interval_s
        return PacedQueue(schedule_pieces, since=now, straight=straight, piece_interval_s=piece_interval_s)

    def _iterate_sizes(self, total: int, dice: Dice) -> Iterator[int]:
        """The sizes of the pieces, from first to last, each at least one byte."""
        spread = abs(self.size_variation)
        uncut = [total]
        # A stack with the first half on top, so that the pieces leave in order.
        while uncut:
            size = uncut.pop()
            # Its defaults cut nothing here; the real server crashes as a whole with them.
            if self.average_size <= 0 or size <= self.average_size + spread:
                yield size
                continue
            middle = size // 2 + (int(dice.draw_between(-spread, spread)) if spread else 0)
            # At least a byte on either side: a variation above the average may ask for less than none.
            first = min(max(1, middle), size - 1)
            uncut += [size - first, first]
