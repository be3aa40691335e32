"""Time, through one door: everything that asks or waits does it by a `Clock`, so that a world can bring its own."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """What a part of the lab may ask of time."""

    def monotonic(self) -> float:
        """Seconds that only rise, equal in every process of one machine."""

    def utc(self) -> datetime:
        """The wall clock in UTC; it may be set back, so nothing is measured with it."""

    def sleep(self, delay_s: float) -> None:
        """Blocks the calling thread."""

    async def asleep(self, delay_s: float) -> None:
        """Suspends the calling task."""


class SystemClock:
    """The machine's own time."""

    def monotonic(self) -> float:
        return time.monotonic()

    def utc(self) -> datetime:
        return datetime.fromtimestamp(time.time(), UTC)

    def sleep(self, delay_s: float) -> None:
        time.sleep(delay_s)

    async def asleep(self, delay_s: float) -> None:
        await asyncio.sleep(delay_s)


system = SystemClock()


def later(moment: datetime, delay_s: float) -> datetime:
    """The moment so many seconds after another; the calendar's last one where that would be beyond it."""
    try:
        return moment + timedelta(seconds=delay_s)
    except OverflowError:
        return datetime.max.replace(tzinfo=moment.tzinfo)


def iso(moment: datetime) -> str:
    """UTC as ISO 8601 with microseconds, e.g. `2026-06-01T09:00:00.000000Z`."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"
