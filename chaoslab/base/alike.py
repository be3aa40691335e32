"""Equal values: two JSON values are compared as data. True is not 1, 1 is 1.0, and floats that differ in their last
digits alone, as sums in another order do, are one number."""

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from chaoslab.base.identity import canonical

DIGITS = 14
"""The digits of a float that count; it has fifteen and a half."""


def alike(one: Any, other: Any) -> bool:
    """True if two JSON values are equal."""
    if type(one) is type(other) and not isinstance(one, float | dict | list):
        return bool(one == other)
    return canonical(one) == canonical(other) or spelt(one) == spelt(other)  # most are equal as they are


def spelt(value: Any) -> str:
    """The JSON value in one spelling, which only equal ones share."""
    return canonical(_plain(value))


def rounded(number: float) -> float:
    """The number without the digits that another order of a sum would change."""
    return number if number.is_integer() else float(f"{number:.{DIGITS}g}")


def as_text(text: str) -> str:
    """The text in the one of its forms of Unicode by which equal texts are equal."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        value = rounded(value)
        return int(value) if value.is_integer() else value
    if isinstance(value, str):
        return as_text(value)
    if isinstance(value, dict):
        return {as_text(name): _plain(held) for name, held in value.items()}
    return [_plain(held) for held in value] if isinstance(value, list) else value


NOW = "the moment of the trial at which it was done"
"""The word for such a moment, which is another one wherever something took longer."""


@dataclass(frozen=True)
class Span:
    """The time of a trial by its wall clock: `seconds` from `began`."""

    began: datetime
    seconds: float

    def unstamped(self, value: Any) -> Any:
        """The JSON value with `NOW` in the place of each moment of this time: texts in ISO 8601, and seconds or
        milliseconds since 1970."""
        if isinstance(value, dict):
            return {name: self.unstamped(held) for name, held in value.items()}
        if isinstance(value, list):
            return [self.unstamped(held) for held in value]
        return NOW if any(map(self._holds, moments(value))) else value

    def _holds(self, moment: datetime) -> bool:
        since = moment - self.began  # a stamp in whole seconds may be before its own moment
        return -_WHOLE < since <= timedelta(seconds=self.seconds)


_WHOLE = timedelta(seconds=1)


def moments(value: Any) -> list[datetime]:
    """The moments that a value may be, in UTC; a text without a zone is UTC or local time."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return []
    if isinstance(value, str) and len(value) <= len("2026-06-01"):  # a day is more than a moment
        return []
    read: Callable[[Any], datetime] = datetime.fromisoformat
    if not isinstance(value, str):
        read = _since_1970
    try:
        moment = read(value)
        return [moment] if moment.tzinfo else [moment.replace(tzinfo=UTC), moment.astimezone(UTC)]
    except (ValueError, OverflowError, OSError):
        return []


def _since_1970(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds / 1000 if seconds > _MILLISECONDS else seconds, UTC)


_MILLISECONDS = 1e11
