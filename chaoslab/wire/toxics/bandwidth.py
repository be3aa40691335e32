"""The line is slow."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from chaoslab.base.dice import Dice
from chaoslab.core.pipe import PacedQueue, Pipe, Signal, Timed
from chaoslab.wire.toxics import Toxic

PIECE_S = 0.1  # the most seconds that a piece of a chunk takes, so that a slow line trickles and does not burst


@dataclass(frozen=True)
class Bandwidth(Toxic):
    """Passes `rate` kilobytes (of 1000 bytes) a second. At 0 or less nothing passes until the toxic is taken out."""

    UNITS: ClassVar = {"rate_kb_s": ("rate", 1)}
    rate: int = 0

    def pipe(self, dice: Dice, now: float, *, before: Pipe | None = None) -> Pipe:  # noqa: ARG002
        return PacedQueue(self._schedule_item, since=now)

    def _schedule_item(self, timed: Timed, start: float) -> Iterable[Timed]:
        if isinstance(timed.item, Signal):
            return (Timed(start, timed.item),)
        # Below 0 too, where the real server crashes as a whole.
        if self.rate <= 0:
            return (Timed(math.inf, timed.item),)
        rate_bps = self.rate * 1000
        # The usual case, without a generator: this runs for each chunk of each connection.
        if len(timed.item) <= int(rate_bps * PIECE_S):
            return (Timed(start + len(timed.item) / rate_bps, timed.item),)
        return self._schedule_pieces(timed.item, start, rate_bps)

    @staticmethod
    def _schedule_pieces(data: bytes, start: float, rate_bps: int) -> Iterator[Timed]:
        size = int(rate_bps * PIECE_S)
        for begin in range(0, len(data), size):
            piece = data[begin : begin + size]
            yield Timed(start + (begin + len(piece)) / rate_bps, piece)
