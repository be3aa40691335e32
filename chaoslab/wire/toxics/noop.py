"""Nothing happens. A noop shows that a toxic was there."""

from collections.abc import Iterable
from dataclasses import dataclass

from chaoslab.base.dice import Dice
from chaoslab.core.pipe import PacedQueue, Pipe, Timed
from chaoslab.wire.toxics import Toxic


@dataclass(frozen=True)
class Noop(Toxic):
    """Passes everything unchanged."""

    def pipe(self, dice: Dice, now: float, *, before: Pipe | None = None) -> Pipe:  # noqa: ARG002
        return PacedQueue(self._schedule_item, since=now, straight=True)

    def _schedule_item(self, timed: Timed, start: float) -> Iterable[Timed]:
        return (Timed(start, timed.item),)
