"""The answer never comes."""

import math
from dataclasses import dataclass
from typing import ClassVar

from chaoslab.base.dice import Dice
from chaoslab.core.pipe import BOUNDLESS, ROOM_BYTES, Pipe, Signal, Timed
from chaoslab.wire.toxics import Toxic


@dataclass(frozen=True)
class Timeout(Toxic):
    """Drops all data. The connection closes after `timeout` silent milliseconds (0: it hangs until the toxic goes).

    If the sender ends the stream, the connection closes at once.
    """

    UNITS: ClassVar = {"after_s": ("timeout", 1000)}
    timeout: int = 0

    def pipe(self, dice: Dice, now: float, *, before: Pipe | None = None) -> Pipe:  # noqa: ARG002
        return _DroppingPipe(max(0, self.timeout) / 1000, now)


class _DroppingPipe:
    """A pipe that drops everything. Its timer runs from the connect and begins again with each chunk."""

    # Nothing is kept, so reading never has to stop for want of room.
    held_bytes = held_piece_count = 0
    capacity_bytes = ROOM_BYTES
    # The timer begins anew with each chunk: a chunk of this moment must come in before its end is asked for.
    acts_on_silence = True
    piece_interval_s = 0.0
    straight = False

    def __init__(self, timeout_s: float, now: float) -> None:
        self._timeout_s = timeout_s
        self._since = now
        self._end = Timed(now + timeout_s if timeout_s else math.inf, Signal.END)
        self._over = False

    def feed(self, timed: Timed) -> None:
        # What comes at the end or after it finds a closed connection and must not begin the timer anew.
        if timed.at >= self._end.at:
            return  # over already
        if isinstance(timed.item, Signal):
            self._end = Timed(max(timed.at, self._since), timed.item)
        elif self._timeout_s:
            self._end = Timed(timed.at + self._timeout_s, Signal.END)

    def poll(self, now: float, count_max: int = BOUNDLESS) -> list[Timed]:  # noqa: ARG002 - there is one item at most
        if self._over or now < self._end.at:
            return []
        self._over = True
        return [self._end]

    def find_next_due(self) -> float | None:
        return None if self._over or self._end.at == math.inf else self._end.at

    def hand_over_items(self, now: float) -> tuple[list[Timed], list[Timed]]:  # noqa: ARG002
        return [], []

    def release_all_items(self, now: float) -> list[Timed]:
        """Ends the stream: data is lost already, so the connection cannot go on."""
        return [Timed(now, Signal.END)]
