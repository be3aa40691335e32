"""Equal values: two JSON values are compared as data. True is not 1, 1 is 1.0, and floats that differ in their last
digits alone, as sums in another order do, are one number."""

import re
import unicodedata
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

from chaoslab.base.identity import canonical

DIGITS = 14
"""The digits of a float that count; it has fifteen and a half."""


def are_equal(left: Any, right: Any) -> bool:
    """True if two JSON values are equal."""
    # Values of these types have one spelling each; a float, and what may hold one, has several.
    if type(left) is type(right) and not isinstance(left, float | dict | list):
        return bool(left == right)
    return canonical(left) == canonical(right) or spell_canonically(left) == spell_canonically(
        right
    )  # most are equal as they are


def spell_canonically(value: Any) -> str:
    """The JSON value in one spelling, which only equal ones share."""
    return canonical(_normalize_value(value))


def round_to_digits(number: float) -> float:
    """The number without the digits that another order of a sum would change."""
    return number if number.is_integer() else float(f"{number:.{DIGITS}g}")


def normalize_unicode(text: str) -> str:
    """The text in the one of its forms of Unicode by which equal texts are equal."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def _normalize_value(value: Any) -> Any:
    if isinstance(value, float):
        value = round_to_digits(value)
        return int(value) if value.is_integer() else value
    if isinstance(value, str):
        return normalize_unicode(value)
    if isinstance(value, dict):
        return {normalize_unicode(name): _normalize_value(entry) for name, entry in value.items()}
    return [_normalize_value(entry) for entry in value] if isinstance(value, list) else value


NOW = "the moment of the trial at which it was done"
"""The word for such a moment, which is another one wherever something took longer."""


@dataclass(frozen=True)
class TrialTimeSpan:
    """The time of a trial by its wall clock: `seconds` from `began`."""

    began: datetime
    seconds: float

    def replace_moments(self, value: Any) -> Any:
        """The JSON value with `NOW` in the place of each moment of this time, as `_WRITTEN` finds them in texts, and of
        numbers of seconds since 1970, or of thousandths, millionths or billionths of them."""
        if isinstance(value, str):
            return _WRITTEN.sub(self._replace_moment, value)
        if isinstance(value, list):
            return [self.replace_moments(entry) for entry in value]
        if isinstance(value, dict):
            fields, times = dict[str, Any](), Counter[str]()
            for name, entry in value.items():
                key = self.replace_moments(name)
                times[key] += 1  # two names may be two moments
                fields[key if times[key] == 1 else f"{key} {times[key]}"] = self.replace_moments(entry)
            return fields
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return NOW if number and any(map(self._contains_moment, parse_moments(value))) else value

    def _replace_moment(self, match: re.Match[str]) -> str:
        text = match[0]
        return NOW if any(map(self._contains_moment, parse_moments(float(text) if match["since"] else text))) else text

    def _contains_moment(self, moment: datetime) -> bool:
        since = moment - self.began  # a stamp in whole seconds may be before its own moment
        return -_WHOLE < since <= timedelta(seconds=self.seconds)


_WHOLE = timedelta(seconds=1)
# Ten digits are seconds from 2001 to 2286; three, six or nine more of them are parts of a second.
_WRITTEN = re.compile(
    r"(?<!\d)(?:"
    r"\d{4}-?\d\d-?\d\d[T ]\d\d:?\d\d(?::?\d\d(?:\.\d+|,\d{3})?)?(?:Z|[+-]\d\d:?\d\d)?"
    r"|[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d (?:GMT|[+-]\d{4})"
    r"|(?P<since>\d{10}(?:\d{3}|\d{6}|\d{9})?(?:\.\d+)?)"
    r")(?!\d|[:.]\d)"
)
"""A moment in a text: in ISO 8601, of mails and HTTP (RFC 5322), or since 1970."""


def parse_moments(value: str | float) -> list[datetime]:
    """The moments that a text in one of these forms or a number may be, in UTC; a text without a zone is UTC or local
    time."""
    try:
        if not isinstance(value, str):
            moment = _moment_from_epoch(value)
        else:
            moment = parsedate_to_datetime(value) if value[3:4] == "," else datetime.fromisoformat(value)
        return [moment] if moment.tzinfo else [moment.replace(tzinfo=UTC), moment.astimezone(UTC)]
    # OSError: the C library knows no such time.
    except (ValueError, OverflowError, OSError):
        return []


def _moment_from_epoch(number: float) -> datetime:
    unit = next((unit for unit in (1, 1e3, 1e6, 1e9) if number < _SECONDS_MAX * unit), 1)
    return datetime.fromtimestamp(number / unit, UTC)


_SECONDS_MAX = 1e11  # the year 5138: a larger number is in a smaller unit
