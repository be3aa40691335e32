"""The answer never comes."""

from __future__ import annotations

from dataclasses import dataclass

from chaoslab.dice import Dice
from chaoslab.pipe import Pipe, Signal, Timed
from chaoslab.wire.toxics import Toxic


@dataclass(frozen=True)
class Timeout(Toxic):
    """All data is dropped; after `timeout` silent milliseconds the connection closes (0: it hangs until the toxic goes)."""

    timeout: int = 0

    def pipe(self, dice: Dice, now: float, *, before: Pipe | None = None) -> Pipe:  # noqa: ARG002
        return _Silence(max(0, self.timeout) / 1000, now)


class _Silence:
    """Swallows everything; the timer runs from the connect and begins again with each chunk."""

    held = 0

    def __init__(self, timeout_s: float, now: float) -> None:
        self._timeout_s = timeout_s
        self._end_at = now + timeout_s if timeout_s else None

    def feed(self, timed: Timed) -> None:
        if self._end_at is not None and isinstance(timed.item, bytes):
            self._end_at = timed.at + self._timeout_s

    def poll(self, now: float) -> list[Timed]:
        if self._end_at is None or now < self._end_at:
            return []
        end = Timed(self._end_at, Signal.END)
        self._end_at, self._timeout_s = None, 0.0
        return [end]

    def wake(self) -> float | None:
        return self._end_at

    def retire(self, now: float) -> tuple[list[Timed], list[Timed]]:  # noqa: ARG002
        return [], []

    def release(self, now: float) -> list[Timed]:
        """Data is lost already, so the connection cannot go on as if nothing had been."""
        return [Timed(now, Signal.END)]
