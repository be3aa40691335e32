"""Numbers, dates and times of the day in one notation: groups of digits, and "4:45 PM" is 16:45.

Units, and times and numbers in words, are left as they are: an answer in another unit's spelling is unclear."""

import re
from datetime import date

_GROUPED = re.compile(r"(?<![\w.,])\d{1,3}(?P<sign>['’_\u00a0\u2009\u202f])\d{3}(?:(?P=sign)\d{3})*(?!\w)")
# With both marks alone: 1.234 may be English.
_CONTINENTAL = re.compile(r"(?<![\w.,])\d{1,3}(?:\.\d{3})+,\d+(?![\w])(?!,\d)")
# With dots the day comes first. With slashes that cannot be told, unless the year comes first.
_DOTTED_DATE = re.compile(r"(?<![\w.])(\d{1,2})\.(\d{1,2})\.(\d{4})(?!\w|\.\d)")
_YEAR_FIRST = re.compile(r"(?<![\w/])(\d{4})/(\d{1,2})/(\d{1,2})(?![\w/])")


def normalize_numbers(text: str) -> str:
    """The text with its numbers in digits and its dates in ISO 8601, where they can be read in one way only."""
    if text.isascii() and not any(c.isdigit() for c in text):
        return text
    text = _GROUPED.sub(lambda match: re.sub(r"\D", "", match[0]), text)
    text = _CONTINENTAL.sub(lambda match: match[0].replace(".", "").replace(",", "."), text)
    text = _DOTTED_DATE.sub(lambda match: format_iso_date(match[3], match[2], match[1], otherwise=match[0]), text)
    return _YEAR_FIRST.sub(lambda match: format_iso_date(match[1], match[2], match[3], otherwise=match[0]), text)


def format_iso_date(year: str, month: str, day: str, *, otherwise: str) -> str:
    """The date in ISO 8601; `otherwise` where there is no such day."""
    try:
        return date(int(year), int(month), int(day)).isoformat()
    except ValueError:
        return otherwise  # no day of the calendar, so it is another number


_CLOCK = re.compile(r"\b(?P<h>1[0-2]|0?[1-9])(?:[:.](?P<m>[0-5]\d))? ?(?P<half>[ap])\.?m\b\.?", re.IGNORECASE)


def convert_to_24_hours(text: str) -> str:
    """The text with each time of the day in 24 hours: "4:45 PM" is "16:45"."""
    if "m" not in text and "M" not in text:
        return text
    return _CLOCK.sub(_format_24_hour_time, text)


def _format_24_hour_time(match: re.Match[str]) -> str:
    hours = int(match["h"]) % 12 + (12 if match["half"] in "pP" else 0)
    return f"{hours:02d}:{match['m'] or '00'}"
