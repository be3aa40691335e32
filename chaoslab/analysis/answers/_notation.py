"""Numbers, dates, times of the day and units in one notation: groups of digits; "4:45 PM" is 16:45, and
"20 kilometres" is 20 km. Amounts in other units, and times and numbers in words, are left as they are."""

import re
from datetime import date

_GROUPED = re.compile(r"(?<![\w.,])\d{1,3}(?P<sign>['’_\u00a0\u2009\u202f])\d{3}(?:(?P=sign)\d{3})*(?!\w)")
# With both marks alone: 1.234 may be English.
_CONTINENTAL = re.compile(r"(?<![\w.,])\d{1,3}(?:\.\d{3})+,\d+(?![\w])(?!,\d)")
# With dots the day comes first. With slashes that cannot be told, unless the year comes first.
_DOTTED_DATE = re.compile(r"(?<![\w.])(\d{1,2})\.(\d{1,2})\.(\d{4})(?!\w|\.\d)")
_YEAR_FIRST = re.compile(r"(?<![\w/])(\d{4})/(\d{1,2})/(\d{1,2})(?![\w/])")


def rewrite_numbers(text: str) -> str:
    """The text with its numbers in digits and its dates in ISO 8601, where they can be read in one way only."""
    if text.isascii() and not any(c.isdigit() for c in text):
        return text
    text = _GROUPED.sub(lambda match: re.sub(r"\D", "", match[0]), text)
    text = _CONTINENTAL.sub(lambda match: match[0].replace(".", "").replace(",", "."), text)
    text = _DOTTED_DATE.sub(lambda match: _iso(match, match[3], match[2], match[1]), text)
    return _YEAR_FIRST.sub(lambda match: _iso(match, match[1], match[2], match[3]), text)


def _iso(match: re.Match[str], year: str, month: str, day: str) -> str:
    try:
        return date(int(year), int(month), int(day)).isoformat()
    except ValueError:
        # No day of the calendar, so it is another number.
        return match[0]


_CLOCK = re.compile(r"\b(?P<h>1[0-2]|0?[1-9])(?:[:.](?P<m>[0-5]\d))? ?(?P<half>[ap])\.?m\b\.?", re.IGNORECASE)


def rewrite_clock(text: str) -> str:
    """The text with each time of the day in 24 hours: "4:45 PM" is "16:45"."""
    if "m" not in text and "M" not in text:
        return text
    return _CLOCK.sub(_rewrite_hour, text)


def _rewrite_hour(match: re.Match[str]) -> str:
    hours = int(match["h"]) % 12 + (12 if match["half"] in "pP" else 0)
    return f"{hours:02d}:{match['m'] or '00'}"


# A unit of one letter counts in its usual case alone.
_UNITS = {
    "c": r"° ?c|degrees? (?:c\b|celsius)|celsius|(?-i:C)",
    "f": r"° ?f|degrees? (?:f\b|fahrenheit)|fahrenheit|(?-i:F)",
    "kmh": r"km/h|kmh|kph|kilomet(?:re|er)s? (?:per|an) hour",
    "mph": r"mph|miles? (?:per|an) hour",
    "ms": r"m/s|met(?:re|er)s? (?:per|a) second",
    "km": r"km|kilomet(?:re|er)s?", "cm": r"cm|centimet(?:re|er)s?", "mm": r"mm|millimet(?:re|er)s?",
    "m": r"(?-i:m)|met(?:re|er)s?", "mi": r"mi|miles?", "ft": r"ft|feet|foot", "in": r"inch(?:es)?",
    "kg": r"kg|kilo(?:gram(?:me)?)?s?", "g": r"(?-i:g)|gram(?:me)?s?", "lb": r"lbs?|pounds?(?! sterling)",
    "oz": r"oz|ounces?", "l": r"(?-i:l)|lit(?:re|er)s?", "ml": r"ml|millilit(?:re|er)s?", "gal": r"gal|gallons?",
    "s": r"(?-i:s)|sec(?:ond)?s?", "min": r"min(?:ute)?s?", "h": r"(?-i:h)|hrs?|hours?", "d": r"days?", "w": r"weeks?",
}  # fmt: skip
"""The ways of writing each unit."""
_AMOUNT = re.compile(
    r"(?<![\w.,])(?P<number>-?\d+(?:,\d{3})*(?:\.\d+)?)[ -]?(?:"
    + "|".join(f"(?P<{name}>{ways})" for name, ways in _UNITS.items())
    + r")(?![\w/])",
    re.IGNORECASE,
)


def rewrite_units(text: str) -> str:
    """The text with the unit of each amount in one spelling: "20 kilometres" is "20 km"."""
    return _AMOUNT.sub(lambda match: f"{match['number'].replace(',', '')} {match.lastgroup}", text)
