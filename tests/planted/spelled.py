"""Other spellings of a value, as models use them: separators, units in words, dates with a month's name.

The ground truth knows only the plain spelling, so a label does not depend on how a value is written.
"""

import re
from datetime import datetime

_MONEY = re.compile(r"^(\d+\.\d+|\d+) (EUR|USD)$")
_SIGN = {"EUR": "€", "USD": "$"}
_NAME = {"EUR": "euros", "USD": "US dollars"}
_COUNTED = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
_UNITS = {
    "°C": ["{} °C", "{}°C", "{} degrees Celsius", "**{} °C**"],
    "mm": ["{} mm", "{}mm", "{} millimetres", "**{} mm**"],
    "km": ["{} km", "{}km", "{} kilometres", "**{} km**"],
}

WAYS = 20
"""A value has no more ways than these; a way is any number."""


def spelled(value: str, way: int) -> str:
    """The value in one of the ways in which it can be written."""
    if money := _MONEY.match(value):
        amount, unit = float(money[1]), money[2]
        return [
            f"{_SIGN[unit]}{amount:,.2f}",
            f"{unit} {amount:,.2f}",
            f"{amount:,.2f} {unit}",
            f"{amount:.2f} {_NAME[unit]}",
        ][way % 4]
    if day := _stamp(value):
        return day[way % len(day)]
    number, _, unit = value.partition(" ")
    if unit in _UNITS:
        grouped = f"{int(number):,}" if number.isdigit() and way % 2 else number
        return _UNITS[unit][way % 4].format(grouped)
    if number in map(str, range(10)) and unit == "open tickets":
        return [value, f"{_COUNTED[int(number)]} open tickets", f"**{number}** open tickets"][way % 3]
    if number.isdigit() and unit == "people":
        return [f"{int(number):,} people", f"{number} people", f"{int(number):,}"][way % 3]
    return value


def _stamp(value: str) -> list[str]:
    if re.fullmatch(r"\d{4}-\d\d-\d\d", value):
        day = datetime.fromisoformat(value)
        return [
            f"{day:%B} {day.day}, {day.year}",
            value,
            f"{day.day} {day:%B} {day.year}",
            f"{day:%A, %B} {day.day}, {day.year}",
        ]
    if re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d", value):
        day = datetime.fromisoformat(value)
        return [
            f"{day:%B} {day.day}, {day.year} at {day:%H:%M}", value, f"{day.day} {day:%B} {day.year}, {day:%H:%M}",
            f"{day:%B} {day.day}, {day.year} at {day.hour % 12 or 12}:{day:%M} {'AM' if day.hour < 12 else 'PM'}",
            f"{day:%Y-%m-%dT%H:%M}",
        ]  # fmt: skip
    return []
