"""Amounts with a unit: 20 °C is 68 °F, and 12 miles are no 12 km."""

import re
from collections.abc import Sequence
from decimal import Decimal
from itertools import pairwise
from typing import NamedTuple

_UNITS: dict[str, tuple[str, str, str, str]] = {
    # The name: what is measured, the ways of writing it, the size in a unit that all of them share, and its zero there.
    "c": ("temperature", r"° ?c|degrees? (?:c\b|celsius)|celsius|(?-i:C)", "1", "0"),
    "f": ("temperature", r"° ?f|degrees? (?:f\b|fahrenheit)|fahrenheit|(?-i:F)", "0.5555555556", "-17.7777777778"),
    "kmh": ("speed", r"km/h|kmh|kph|kilomet(?:re|er)s? (?:per|an) hour", "1", "0"),
    "mph": ("speed", r"mph|miles? (?:per|an) hour", "1.609344", "0"),
    "ms": ("speed", r"m/s|met(?:re|er)s? (?:per|a) second", "3.6", "0"),
    "km": ("length", r"km|kilomet(?:re|er)s?", "1000", "0"),
    "cm": ("length", r"cm|centimet(?:re|er)s?", "0.01", "0"),
    "mm": ("length", r"mm|millimet(?:re|er)s?", "0.001", "0"),
    "m": ("length", r"(?-i:m)|met(?:re|er)s?", "1", "0"),
    "mi": ("length", r"mi|miles?", "1609.344", "0"),
    "ft": ("length", r"ft|feet|foot", "0.3048", "0"),
    "in": ("length", r"inch(?:es)?", "0.0254", "0"),
    "kg": ("mass", r"kg|kilo(?:gram(?:me)?)?s?", "1", "0"),
    "g": ("mass", r"(?-i:g)|gram(?:me)?s?", "0.001", "0"),
    "lb": ("mass", r"lbs?|pounds?(?! sterling)", "0.45359237", "0"),
    "oz": ("mass", r"oz|ounces?", "0.028349523125", "0"),
    "l": ("volume", r"l|lit(?:re|er)s?", "1", "0"),
    "ml": ("volume", r"ml|millilit(?:re|er)s?", "0.001", "0"),
    "gal": ("volume", r"gal|gallons?", "3.785411784", "0"),
    "s": ("time", r"(?-i:s)|secs?|seconds?", "1", "0"),
    "min": ("time", r"mins?|minutes?", "60", "0"),
    "h": ("time", r"(?-i:h)|hrs?|hours?", "3600", "0"),
    "d": ("time", r"days?", "86400", "0"),
    "w": ("time", r"weeks?", "604800", "0"),
}  # fmt: skip
_AMOUNT = re.compile(
    r"(?P<about>(?:about|around|approximately|approx\.?|roughly|nearly|almost|some|~) ?)?"
    r"(?<![\w.,])(?P<number>-?\d+(?:,\d{3})*(?:\.\d+)?)[ -]?(?:"
    + "|".join(f"(?P<{name}>{ways})" for name, (_, ways, _, _) in _UNITS.items())
    + r")(?![\w/])",
    re.IGNORECASE,
)
_IMPERIAL = frozenset(["f", "mph", "mi", "ft", "in", "lb", "oz", "gal"])
"""Between these and the others amounts are rounded; 58 minutes are no hour."""
_OFF_MAX = Decimal("0.05")
"""The largest share by which a rounded amount may differ: 1 mile is no 1 km, though 0.6 can be rounded to 1."""


BESIDE = 3
"""The most characters between an amount and the same in a second unit, as in "20 °C (68 °F)"."""

AMOUNTS_MAX = 200
"""Each amount is held against all of the other text, so texts with more are compared in the units that they have."""


class Amount(NamedTuple):
    """A number with a unit, at its place."""

    number: Decimal
    unit: str
    text: str
    start: int
    end: int
    about: bool

    @property
    def measures(self) -> str:
        return _UNITS[self.unit][0]


def amounts(text: str) -> list[Amount]:
    """The amounts of a text, in their order."""
    return [
        Amount(
            Decimal(match["number"].replace(",", "")),
            match.lastgroup or "",
            match[0][len(match["about"] or "") :],
            match.start("number"),
            match.end(),
            bool(match["about"]),
        )
        for match in _AMOUNT.finditer(text)
    ]


def aligned(expected: str, given: str) -> tuple[str, str]:
    """Two texts of which the second has its amounts in the units of the first, where they are the same but for
    rounding. An amount that stands there in a second unit too is left out."""
    wanted, said = amounts(expected), amounts(given)
    if not wanted or not said or max(len(wanted), len(said)) > AMOUNTS_MAX:
        return expected, given
    there = {(each.number, each.unit) for each in wanted}
    units = {each.unit for each in said}
    twice = [
        each
        for before, each in pairwise(wanted)
        if each.unit not in units and _rounded(before, each) and each.start - before.end <= BESIDE
    ]
    kept = [each for each in wanted if each not in twice] or wanted
    expected = _with(expected, [(each, " ") for each in wanted if each not in kept])
    have = {(each.number, each.unit) for each in said}
    changed = []
    for before, each in pairwise([None, *said]):
        assert each is not None
        same = next((other for other in kept if _rounded(other, each)), None)
        if (each.number, each.unit) in there or same is None:
            continue
        if (same.number, same.unit) not in have:
            changed.append((each, same.text))
        elif before is not None and each.start - before.end <= BESIDE:
            changed.append((each, " "))
    return expected, _with(given, changed)


def spelled(text: str) -> str:
    """The text with the unit of each amount in one spelling: "20 kilometres" is "20 km"."""
    return _with(text, [(each, f"{each.number} {each.unit}") for each in amounts(text)])


def _rounded(exact: Amount, other: Amount) -> bool:
    """True if the second amount is the first one in another unit, rounded to the digits that it has."""
    if exact.unit == other.unit or exact.measures != other.measures:
        return False
    size, zero = (Decimal(held) for held in _UNITS[exact.unit][2:])
    other_size, other_zero = (Decimal(held) for held in _UNITS[other.unit][2:])
    value = (exact.number * size + zero - other_zero) / other_size
    digits = other.number.as_tuple().exponent
    assert isinstance(digits, int)
    if other.about and digits == 0:
        digits = len(f"{other.number}") - len(f"{other.number}".rstrip("0"))
    off = abs(value - other.number)
    if not other.about and exact.measures != "speed" and (exact.unit in _IMPERIAL) is (other.unit in _IMPERIAL):
        return off == 0
    return off <= Decimal(5).scaleb(digits - 1) and (
        exact.measures == "temperature" or off <= _OFF_MAX * abs(other.number)
    )


def _with(text: str, changed: Sequence[tuple[Amount, str]]) -> str:
    parts, at = [], 0
    for each, instead in changed:
        parts += [text[at : each.start], instead]
        at = each.end
    return "".join([*parts, text[at:]])
