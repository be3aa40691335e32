"""Equal values: two JSON values are compared as data. True is not 1, 1 is 1.0, and floats that differ in their last
digits alone, as sums in another order do, are one number."""

import unicodedata
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
