"""The values of a text: its numbers, dates and names, each in one spelling."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from functools import lru_cache

from chaoslab.analysis.answers.daytime import clock
from chaoslab.analysis.making import COUNTED
from chaoslab.analysis.stance.clauses import plain as _plain

EXPONENT_MAX = 40
"""The largest exponent of a number that is written out: 1e3 is 1000."""


# --- words and numbers ---

_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff"
"""Thai, Lao, Burmese, Khmer, kana and Han: scripts without spaces between words, so each sign is a token."""

_TOKEN = re.compile(
    rf"""
    (?P<sign>[{_UNSPACED}])
    | (?P<dotted>\d+(?:\.\d+){{2,}})                                           # 1.2.3 is a name, not a number
    | (?P<number>(?:(?<![\w.)])-)?
        (?:(?<!\d,)\d{{1,3}}(?:,\d{{3}})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)?|(?<![\w.])\.\d+)
        (?:e[+-]?\d+)?)
      (?=$|[\W_]|[^\W\d_]+(?:$|[\W_])|t\d)                                     # 12, 12km, 02T15 – but not 4f2a
    | (?P<word>[^\W_]+(?:(?<=\d)\.\d+)*)
    """,
    re.VERBOSE,
)
_STAMP = re.compile(r"(?<=\d)t(?=\d\d:)")


SHORT = 500
"""The most characters of a text whose tokens are kept for the next time: one comparison asks for them ten times."""


def tokens(text: str) -> list[str]:
    """The words and numbers of a text in a canonical spelling; a number begins with #."""
    return [*_kept(text)] if len(text) <= SHORT else _tokens(text)


@lru_cache(maxsize=128)
def _kept(text: str) -> tuple[str, ...]:
    return tuple(_tokens(text))


def _tokens(text: str) -> list[str]:
    found = []
    for match in _TOKEN.finditer(_STAMP.sub(" t ", clock(_plain(text)))):
        number = match["number"]
        found.append(_canonical(number) if number else match[0])
    return found


def _canonical(number: str) -> str:
    digits, _, exponent = number.replace(",", "").partition("e")
    if exponent and (len(exponent) > 5 or abs(int(exponent)) > EXPONENT_MAX):
        return f"#{digits}e{exponent}"
    text = f"{Decimal(f'{digits}e{exponent or 0}'):f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "#0" if text in ("-0", "") else f"#{text}"


# --- dates and numbers ---

_MONTHS = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
MONTH = "|".join(f"{name}|{name[:3]}" for name in _MONTHS)
_DATE = re.compile(
    rf"\b(?P<y>\d{{4}})-(?P<m>\d{{1,2}})-(?P<d>\d{{1,2}})(?:t(?=\d\d:)|(?!\d))"
    rf"|\b(?P<d2>\d{{1,2}})(?:st|nd|rd|th)? (?:of )?(?P<m2>{MONTH})\.?,? (?P<y2>\d{{4}})\b"
    rf"|\b(?P<m3>{MONTH})\.? (?P<d3>\d{{1,2}})(?:st|nd|rd|th)?,? (?P<y3>\d{{4}})\b",
    re.IGNORECASE,
)
_YEAR = re.compile(r"\d{4}")
"""A text without it has no date."""


def dates_in(text: str) -> tuple[list[str], str]:
    """The dates of a text (ISO 8601), and the text without them."""
    found: list[str] = []
    if not _YEAR.search(text):
        return found, text

    def dated(match: re.Match[str]) -> str:
        day = _date(match)
        if day is None:
            return match[0]
        found.append(day)
        return " "

    return found, _DATE.sub(dated, text)


def in_iso(text: str) -> str:
    """The text with its dates in ISO 8601."""
    return _DATE.sub(lambda match: _date(match) or match[0], text) if _YEAR.search(text) else text


def values_in(text: str) -> list[str]:
    """The dates of a text, then its other numbers, in their order."""
    found, rest = dates_in(text)
    for token in tokens(rest):
        value = COUNTED.get(token, token)
        if any(c.isdigit() for c in value):
            found.append(value.removeprefix("#"))
    return found


def _date(match: re.Match[str]) -> str | None:
    year, month, day = (match[n] or match[f"{n}2"] or match[f"{n}3"] for n in "ymd")
    number = int(month) if month.isdecimal() else [name[:3] for name in _MONTHS].index(month[:3].casefold()) + 1
    try:
        return date(int(year), number, int(day)).isoformat()
    except ValueError:
        return None


# --- names ---


def words_of(words: str) -> frozenset[str]:
    """The words of a list with spaces, as a set."""
    return frozenset(words.split())


NAME = re.compile(r"(?<!°)[^\W\d_][^\W_]*(?:[-'’][^\W_]+)*")
_RAISED = re.compile(r"\w+(?:Error|Exception)")
ORDINARY = words_of(
    "i i'm i've i'll i'd ok okay yes no mr mrs ms dr the a an it its this that these those you your we our they he she"
    " and or but if in on at to of for from with by as is are was were be done usd eur api http https url json sdk am"
    " pm celsius fahrenheit sir madam error success successful failed failure completed complete unknown pending status"
    " result note warning"
)


def names_in(text: str) -> list[str]:
    """The capitalised words of a text that begin no sentence and belong to no date, each once."""
    found = []
    for sentence in re.split(r"(?<=[.!?:;])\s+|\n+|[“\"(\U0001F300-\U0001FAFF\u2600-\u27BF]\uFE0F?", dates_in(text)[1]):
        for number, match in enumerate(NAME.finditer(sentence)):
            word = match[0]
            if any(c.isdigit() for c in word) or _RAISED.fullmatch(word):  # a value, or what the agent caught
                continue
            if number and word[0].isupper() and re.split("['’]", word)[0].casefold() not in ORDINARY:
                found.append(re.sub(r"['’]s$", "", word))
    return list(dict.fromkeys(found))


def not_in(names: Sequence[str], text: str) -> list[str]:
    """The names of which a text lacks a word."""
    there = set(tokens(text))
    return [name for name in names if not set(tokens(name)) <= there]
