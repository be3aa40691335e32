"""Clocks: all code that reads the time or waits does it by a `Clock`, so that a world can bring its own."""

import time
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """The interface to time of every part of the lab."""

    def monotonic(self) -> float:
        """Seconds that never fall, equal in every process of one machine."""

    def utc(self) -> datetime:
        """The wall clock in UTC. It may be set back, so nothing is measured with it."""

    def sleep(self, delay_s: float) -> None:
        """Blocks the calling thread."""

    async def sleep_async(self, delay_s: float) -> None:
        """Suspends the calling task."""


class SystemClock:
    """The machine's own time."""

    def monotonic(self) -> float:
        return time.monotonic()

    def utc(self) -> datetime:
        return datetime.fromtimestamp(time.time(), UTC)

    def sleep(self, delay_s: float) -> None:
        time.sleep(delay_s)

    async def sleep_async(self, delay_s: float) -> None:
        import asyncio  # 50 ms, which most commands do not need

        await asyncio.sleep(delay_s)


system = SystemClock()


@dataclass
class Skew:
    """A wall clock that is wrong by `ahead_s`. `told_ns`: the time that it told last, in nanoseconds since 1970; None
    as long as nobody asked."""

    ahead_s: float = 0.0
    told_ns: int | None = None

    def shift_time(self, right_ns: int) -> int:
        self.told_ns = told_ns = right_ns + round(self.ahead_s * 1e9)
        return told_ns


skew: ContextVar[Skew | None] = ContextVar("skew", default=None)
"""The skew of the wall clock in this thread or task, which the virtual world's clock heeds; None if there is none. So a
wrong clock is wrong for one call: callers, other tasks and other services keep the right time."""


def add_seconds(moment: datetime, delay_s: float) -> datetime:
    """The moment `delay_s` seconds later, or the calendar's last moment if that is beyond it."""
    try:
        return moment + timedelta(seconds=delay_s)
    except OverflowError:
        return datetime.max.replace(tzinfo=moment.tzinfo)


def format_iso(moment: datetime) -> str:
    """UTC as ISO 8601 with microseconds, e.g. `2026-06-01T09:00:00.000000Z`."""
    if moment.tzinfo is not UTC:
        moment = moment.astimezone(UTC)
    second, spelt = _last[0]
    since = moment - second
    if since.days or since.seconds:
        second = moment.replace(microsecond=0)
        spelt = second.isoformat()[: -len("+00:00")]
        _last[0] = second, spelt
    return f"{spelt}.{moment.microsecond:06}Z"


_last = [(datetime(1970, 1, 1, tzinfo=UTC), "1970-01-01T00:00:00")]
"""The second of the last moment, and its text: many lines of a log come within one."""
