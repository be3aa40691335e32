"""Two texts in one notation, as tokens: markdown, numbers, units, dates, times and currencies in one spelling."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

from chaoslab.analysis.answers import amounts, notation
from chaoslab.analysis.answers.daytime import clock
from chaoslab.analysis.answers.values import in_iso, tokens

NUMBER_WORDS = {word: f"#{number}" for word, number in notation.SMALL.items() if 2 <= number <= 12}
CURRENCIES = frozenset(["eur", "usd", "gbp", "jpy"])
_SPELLED = {
    "eur": r"€|\beuros?\b",
    "usd": r"(?<![a-z])(?:us ?)?\$|\b(?:us |u\.s\. )?dollars?\b",
    "gbp": r"£|\bpounds? sterling\b",
    "jpy": r"¥|\byen\b",
    "percent": r"%|\bper cent\b",
}
_SPELLING = re.compile("|".join(f"(?P<{name}>{ways})" for name, ways in _SPELLED.items()), re.IGNORECASE)
_SIGNS = {
    "½": ".5", "¼": ".25", "¾": ".75", "≥": " atleast ", "≤": " atmost ", "±": " plusminus ", "≠": " not ",
    "~": " about ", "≈": " about ", "✅": " ok ", "✔": " ok ", "👍": " ok ", "❌": " failed ", "✗": " failed ",
    "✘": " failed ", "👎": " failed ", "⚠": " warning ", "?": " questionmark ",
}  # fmt: skip
"""Signs that say something, and the words that stand for them. All other signs are left out."""
_SIGN = re.compile("|".join(map(re.escape, _SIGNS)))
_PLUS = re.compile(r"(?<![\w.)+-])[+-](?=[^\W\d])|(?<![\w.)+])\+(?=\d)")
"""A sign before a word or number; that of -5 belongs to the number."""
_OWED = re.compile(r"\((?=[$€£¥]?\d[\d.,]*\))")
"""The bracket that makes (500) a negative amount."""
_SYMBOL = re.compile(r"[^\w\s.,;:!?'\"()\[\]{}*_`#|/\\&-]")
_MARKDOWN = re.compile(
    r"^[ \t]*(?:```\w*[ \t]*$|[>#]+[ \t]+|[|:\- \t]*-{3,}[|:\- \t]*$|[-*+•][ \t]+)|[*_`]{1,3}(?=\S)|(?<=\S)[*_`]{1,3}",
    re.MULTILINE,
)
_AT = re.compile(r"(?<=\d{4}-\d\d-\d\d),?\s+at\s+(?=\d)", re.IGNORECASE)
_BULLET = re.compile(r"[ \t]*[-*+•][ \t]+\S")


def normal(expected: str, given: str) -> tuple[list[str], list[str]]:
    """The tokens of both texts. A time or amount of the second is spelled as in the first where it is the same one."""
    one, two = _plainly(expected), _plainly(given)
    one, two = amounts.aligned(clock(one, two), clock(two, one))
    return _tokens(one), _tokens(two)


@lru_cache(maxsize=64)
def _plainly(text: str) -> str:
    text = _SIGN.sub(_in_words, _MARKDOWN.sub(" ", text))
    return _AT.sub(" ", in_iso(notation.plainly(text)))


def _in_words(match: re.Match[str]) -> str:
    word = _SIGNS[match[0]]
    if word.startswith("."):  # 12½ is 12.5
        return word if match.string[: match.start()][-1:].isdigit() else f"0{word}"
    return word


def _tokens(text: str) -> list[str]:
    text = _SPELLING.sub(lambda match: f" {match.lastgroup} ", amounts.spelled(text))
    text = _OWED.sub(" owed ", _PLUS.sub(lambda match: " plus " if match[0] == "+" else " minus ", text))
    text = _SYMBOL.sub(_named, text)
    found = [NUMBER_WORDS.get(token, token) for token in tokens(text)]
    for at in range(len(found) - 1):  # USD 30 is 30 USD
        owned = at > 0 and found[at - 1].startswith("#")
        if found[at] in CURRENCIES and found[at + 1].startswith("#") and not owned:
            found[at], found[at + 1] = found[at + 1], found[at]
    return found


def _named(match: re.Match[str]) -> str:
    """The name of a mathematical sign, a currency or a picture, which may say anything; punctuation as it is."""
    if not unicodedata.category(match[0]).startswith("S"):
        return match[0]
    return " sign" + re.sub(r"[^a-z]", "", unicodedata.name(match[0], "unknown").lower()) + " "


def bullets(text: str) -> Sequence[str] | None:
    """The lines of a text with its items sorted, if it has a list without numbers; None if it has none."""
    lines = [line for line in text.splitlines() if line.strip()]
    items = [line.strip() for line in lines if _BULLET.match(line)]
    if len(items) < 2:
        return None
    return [*(line.strip() for line in lines if not _BULLET.match(line)), *sorted(items)]
