"""The data arrives at once, the end of the stream late."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from chaoslab.base.dice import Dice
from chaoslab.core.pipe import PacedQueue, Pipe, Signal, Timed
from chaoslab.wire.toxics import Toxic


@dataclass(frozen=True)
class SlowClose(Toxic):
    """Delays the end of the stream, also a reset, by `delay` milliseconds."""

    UNITS: ClassVar = {"delay_s": ("delay", 1000)}
    delay: int = 0

    def pipe(self, dice: Dice, now: float, *, before: Pipe | None = None) -> Pipe:  # noqa: ARG002
        # Straight, since only the end has to pass through it.
        return PacedQueue(self._schedule_item, since=now, straight=True)

    def _schedule_item(self, timed: Timed, start: float) -> Iterable[Timed]:
        late_s = max(0, self.delay) / 1000 if isinstance(timed.item, Signal) else 0.0
        return (Timed(start + late_s, timed.item),)
