"""Nothing happens. A noop shows that a toxic was there."""

from collections.abc import Iterable
from dataclasses import dataclass

from chaoslab.base.dice import Dice
from chaoslab.core.pipe import Pipe, ServedLine, Timed
from chaoslab.wire.toxics import Toxic


@dataclass(frozen=True)
class Noop(Toxic):
    """Passes everything unchanged."""

    def pipe(self, dice: Dice, now: float, *, before: Pipe | None = None) -> Pipe:  # noqa: ARG002
        return ServedLine(self._law, since=now, straight=True)

    def _law(self, timed: Timed, start: float) -> Iterable[Timed]:
        return (Timed(start, timed.item),)
