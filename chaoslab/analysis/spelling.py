"""One spelling for what can be written in several ways: currencies and units."""

from __future__ import annotations

import re
import unicodedata

_UNITS = {
    "eur": r"€|\beur\b|\beuros?\b",
    "usd": r"(?<![a-z])(?:us ?)?\$|\busd\b|\b(?:us |u\.s\. )?dollars?\b",
    "gbp": r"£|\bgbp\b|\bpounds? sterling\b",
    "jpy": r"¥|\bjpy\b|\byen\b",
    "percent": r"%|\bper ?cent\b",
    "celsius": r"(?:°|\bdegrees?) ?(?:c|celsius)\b",
    "fahrenheit": r"(?:°|\bdegrees?) ?(?:f|fahrenheit)\b",
    "mm": r"(?<=\d)mm\b|\bmillimet(?:re|er)s?\b",
    "km": r"(?<=\d)km\b|\bkilomet(?:re|er)s?\b",
    "kg": r"(?<=\d)kg\b|\bkilo(?:gram(?:me)?)?s?\b",
}
_SIGNS = {"€": "eur", "$": "usd", "£": "gbp", "¥": "jpy", "%": "percent"}
_MENTION = re.compile("|".join(f"(?P<{name}>{ways})" for name, ways in _UNITS.items()), re.IGNORECASE)


def units(text: str) -> str:
    """The text with each currency, and each common unit, as a word of small letters beside its number."""
    return _MENTION.sub(lambda match: f" {match.lastgroup} ", text)


def signs(text: str) -> set[str]:
    """The currencies that a text shows by a sign, and "percent"."""
    if text.isascii() and "$" not in text and "%" not in text:
        return set()
    found = {match.lastgroup or "" for match in _MENTION.finditer(text) if match[0] in _SIGNS}
    others = (c for c in text if unicodedata.category(c) == "Sc" and c not in _SIGNS)
    return found.union(others)


def sign(name: str) -> str:
    """The sign of a currency."""
    return next((sign for sign, each in _SIGNS.items() if each == name), name)


def shows_currency(text: str, name: str) -> bool:
    """True if the text shows this currency, by its sign, its code or its name."""
    return name in text or any(match.lastgroup == name for match in _MENTION.finditer(text))
