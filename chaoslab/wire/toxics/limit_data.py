"""The stream ends after a number of bytes."""

from collections.abc import Iterable
from dataclasses import dataclass

from chaoslab.base.dice import Dice
from chaoslab.core.pipe import PacedQueue, Pipe, Signal, Timed
from chaoslab.wire.toxics import Toxic


@dataclass(frozen=True)
class LimitData(Toxic):
    """Passes exactly `bytes` bytes, then ends the stream. Bytes that passed before a PATCH still count."""

    bytes: int = 0

    def pipe(self, dice: Dice, now: float, *, before: Pipe | None = None) -> Pipe:  # noqa: ARG002
        # Carried over a PATCH: the bytes have passed, and a limit is one of the connection.
        return _Counter(self.bytes, now, passed=before.passed if isinstance(before, _Counter) else 0)


class _Counter(PacedQueue):
    """A line that counts the bytes passed."""

    def __init__(self, limit: int, now: float, *, passed: int) -> None:
        super().__init__(self._cut_at_limit, since=now)
        self.limit = limit
        self.passed = passed

    def _cut_at_limit(self, timed: Timed, start: float) -> Iterable[Timed]:
        if isinstance(timed.item, Signal):
            return (Timed(start, timed.item),)
        # Below 0 once a PATCH has set the limit below what had passed.
        piece = timed.item[: max(0, self.limit - self.passed)]
        self.passed += len(piece)
        if self.passed < self.limit:
            return (Timed(start, piece),)  # it passes whole
        # In the middle of a chunk, as the real one: the reader hears a part of a message and then the end.
        return (Timed(start, piece), Timed(start, Signal.END))
