"""The connection is reset (RST)."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from chaoslab.base.dice import Dice
from chaoslab.core.pipe import PacedQueue, Pipe, Signal, Timed
from chaoslab.wire.toxics import Toxic


@dataclass(frozen=True)
class ResetPeer(Toxic):
    """Resets the connection `timeout` milliseconds after the first data or the end. An idle one is left alone."""

    UNITS: ClassVar = {"after_s": ("timeout", 1000)}
    timeout: int = 0

    def pipe(self, dice: Dice, now: float, *, before: Pipe | None = None) -> Pipe:  # noqa: ARG002
        return PacedQueue(self._schedule_reset, since=now)

    # The data goes nowhere: a reset throws away what the sockets hold.
    def _schedule_reset(self, timed: Timed, start: float) -> Iterable[Timed]:  # noqa: ARG002
        # On a live connection too, where the real one closes with FIN: it is what the toxic's name says.
        return (Timed(start + max(0, self.timeout) / 1000, Signal.RESET),)
