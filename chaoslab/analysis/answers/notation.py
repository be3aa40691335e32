"""Numbers and dates in other notations: groups of digits, words, multipliers, and the order of a date's parts.

`plainly` rewrites what can be read in one way only. `readings` are the texts that result if what can be read in
several ways is read in each of them, so two answers that are alike in one of them may say the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from decimal import Decimal

SMALL = {
    "zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
    "ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16,
    "seventeen": 17, "eighteen": 18, "nineteen": 19,
}  # fmt: skip
"""The numbers that are one word and no tens."""
_TENS = {
    "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90,
}  # fmt: skip
_TIMES = {"hundred": 100, "thousand": 1_000, "million": 1_000_000, "billion": 1_000_000_000}
_SHORT = {"k": "thousand", "m": "million", "mn": "million", "bn": "billion"}
_WORD = "|".join([*SMALL, *_TENS, *_TIMES])
_COUNT = re.compile(
    rf"\b(?:{_WORD})\b(?:(?:-| | and |, (?=(?:{'|'.join(SMALL | _TENS)})\b[ -](?:hundred|thousand)))(?:{_WORD})\b)*",
    re.IGNORECASE,
)
_MANY = re.compile(rf"(?<![\w.,])(\d+(?:\.\d+)?) ({'|'.join(_TIMES)})\b", re.IGNORECASE)
_MANY_SHORT = re.compile(r"(?<![\w.,])(\d+(?:\.\d+)?)([kK]|M|mn|bn)\b")
_GROUPED = re.compile(r"(?<![\w.,])\d{1,3}(?P<sign>['’_\u00a0\u2009\u202f])\d{3}(?:(?P=sign)\d{3})*(?!\w)")
_CONTINENTAL = re.compile(r"(?<![\w.,])\d{1,3}(?:\.\d{3})+,\d+(?![\w])(?!,\d)")
_BELOW = re.compile(
    r"(?<![\w.-])(\d+(?:\.\d+)?)( ?°| degrees?)?( ?(?:celsius|fahrenheit|c|f)\b)? below (?:zero|freezing)\b",
    re.IGNORECASE,
)
_MINUS = re.compile(r"(?<!\d )\bminus (?=\d)", re.IGNORECASE)
_DOTTED_DATE = re.compile(r"(?<![\w.])(\d{1,2})\.(\d{1,2})\.(\d{4})(?!\w|\.\d)")
_YEAR_FIRST = re.compile(r"(?<![\w/])(\d{4})/(\d{1,2})/(\d{1,2})(?![\w/])")
_HALVES = re.compile(r"\b(?:an|one|1) hour and a half\b|\bhalf an hour\b", re.IGNORECASE)
_HALF_HOURS = {"a half": "90 minutes", "an hour": "30 minutes"}

# What can be read in several ways.

_SPACED = re.compile(r"(?<![\w.,])[1-9]\d{0,2}(?: \d{3})+(?![\w])")
_DOT_GROUPS = re.compile(r"(?<![\w.,])[1-9]\d{0,2}(?:\.\d{3})+(?![\w.,]\d|\w)")
_COMMA = re.compile(r"(?<![\w.,])(\d+),(\d{1,2})(?![\w]|,\d)")
_SLASHED = re.compile(r"(?<![\w/])(\d{1,2})/(\d{1,2})/(\d{4})(?![\w/])")
_UNIT: dict[str, tuple[str, int | Decimal]] = {
    "seconds": (r"s|secs?|seconds?", 1), "minutes": (r"min|mins|minutes?", 60), "hours": (r"h|hrs?|hours?", 3600),
    "days": (r"d|days?", 86400), "mm": (r"mm|millimet(?:re|er)s?", Decimal("0.001")), "m": (r"m|met(?:re|er)s?", 1),
    "cm": (r"cm|centimet(?:re|er)s?", Decimal("0.01")), "km": (r"km|kilomet(?:re|er)s?", 1000),
    "g": (r"g|grams?", 1), "kg": (r"kg|kilo(?:gram)?s?", 1000), "percent": (r"%|per ?cent\b", Decimal("0.01")),
}  # fmt: skip
_KINDS = {"seconds": "seconds", "minutes": "seconds", "hours": "seconds", "days": "seconds", "g": "grams",
          "kg": "grams", "percent": ""}  # fmt: skip
_AMOUNT = re.compile(
    r"(?<![\w.,])(\d+(?:,\d{3})*(?:\.\d+)?) ?(?:"
    + "|".join(f"(?P<{name}>{ways})" for name, (ways, _) in _UNIT.items())
    + r")(?!\w)",
    re.IGNORECASE,
)
_ADDED = re.compile(r"(?<!\d)(\d+) seconds(?:,? and|,)? (\d+) seconds")
_ALONE = re.compile(r"\b(?:zero|one)\b", re.IGNORECASE)


def plainly(text: str) -> str:
    """The text with its numbers in digits and its dates in ISO 8601, where they can be read in one way only."""
    if text.isascii() and not any(c.isalnum() for c in text):
        return text
    text = _GROUPED.sub(lambda match: re.sub(r"\D", "", match[0]), text)
    text = _CONTINENTAL.sub(lambda match: match[0].replace(".", "").replace(",", "."), text)
    text = _DOTTED_DATE.sub(lambda match: _iso(match, match[3], match[2], match[1]), text)
    text = _YEAR_FIRST.sub(lambda match: _iso(match, match[1], match[2], match[3]), text)
    text = _RANGE.sub(_from_to, text)
    text = _HALVES.sub(lambda match: _HALF_HOURS[" ".join(match[0].casefold().split()[-2:])], text)
    text = _COUNT.sub(_counted, text)
    text = _MANY.sub(lambda match: _times(match[1], match[2].casefold()), text)
    text = _MANY_SHORT.sub(lambda match: _times(match[1], _SHORT[match[2].casefold()]), text)
    text = _BELOW.sub(lambda match: f"-{match[1]}{match[2] or ''}{match[3] or ''}", text)
    return _MINUS.sub("-", text)


def readings(text: str) -> Iterator[str]:
    """The text in each way in which its numbers and dates can be read, itself left out."""
    for days_first in (True, False):
        for number in (_spaced, _dotted):
            read = _SLASHED.sub(_day_first if days_first else _month_first, number(text))
            yield read
            yield _converted(read)
    yield _yearless(text)


_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    "(?P<{}>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_DAY = re.compile(
    r"\b\d{4}-(?P<m>\d\d)-(?P<d>\d\d)\b"
    rf"|\b(?P<d2>\d{{1,2}})(?:st|nd|rd|th)? (?:of )?{_MONTH.format('m2')}(?:,? \d{{4}}\b)?"
    rf"|\b{_MONTH.format('m3')} (?P<d3>\d{{1,2}})(?:st|nd|rd|th)?\b(?:,? \d{{4}}\b)?",
    re.IGNORECASE,
)


_DAYS = r"(?P<{}>\d{{1,2}})(?:st|nd|rd|th)?(?: ?[-–—] ?| to | until | through | till )(?P<{}>\d{{1,2}})(?:st|nd|rd|th)?"
_RANGE = re.compile(
    rf"(?<![\w.,-]){_DAYS.format('from', 'to')} (?:of )?{_MONTH.format('m')},? (?P<y>\d{{4}})\b"
    rf"|\b{_MONTH.format('m2')} {_DAYS.format('from2', 'to2')},? (?P<y2>\d{{4}})\b",
    re.IGNORECASE,
)


def _from_to(match: re.Match[str]) -> str:
    """Both ends of a range of days: "3-7 Aug 2026" are two dates."""
    first, last, month, year = (match[name] or match[f"{name}2"] for name in ("from", "to", "m", "y"))
    if int(first) >= int(last):
        return match[0]
    number = str(_MONTHS.index(month[:3].casefold()) + 1)
    ends = [_iso(match, year, number, day) for day in (first, last)]
    return match[0] if match[0] in ends else " to ".join(ends)


def _yearless(text: str) -> str:
    """The text with each date as a month and a day alone."""

    def of_year(match: re.Match[str]) -> str:
        month, day = match["m"] or match["m2"] or match["m3"], match["d"] or match["d2"] or match["d3"]
        number = int(month) if month.isdecimal() else _MONTHS.index(month[:3].casefold()) + 1
        return f" m{number}d{int(day)} "

    return _DAY.sub(of_year, text)


def _iso(match: re.Match[str], year: str, month: str, day: str) -> str:
    try:
        return date(int(year), int(month), int(day)).isoformat()
    except ValueError:
        return match[0]


def _counted(match: re.Match[str]) -> str:
    """The number of these words; the words themselves if they are a small number alone, which may be a pronoun, or
    belong to several numbers."""
    words = re.findall(r"[a-z]+", match[0].casefold())
    words = [word for word in words if word != "and"]
    if len(words) == 1 and (words[0] in _TIMES or SMALL.get(words[0], 99) <= 12):
        return match[0]
    total = part = 0
    last = 0  # the size of the last word: only a smaller one can be added to it
    for word in words:
        if word in _TIMES:
            times = _TIMES[word]
            if times == 100:
                part = max(part, 1) * 100
            else:
                total, part = total + max(part, 1) * times, 0
            last = times
            continue
        value, size = (SMALL[word], 1) if word in SMALL else (_TENS[word], 10)
        if (last and last <= size) or (last == 10 and value >= 10):
            return match[0]
        part, last = part + value, size
    return str(total + part)


def _times(number: str, word: str) -> str:
    return f"{(Decimal(number) * _TIMES[word]).normalize():f}"


def _spaced(text: str) -> str:
    return _SPACED.sub(lambda match: match[0].replace(" ", ""), text)


def _dotted(text: str) -> str:
    """The text with a point between groups of digits, and a comma before decimals."""
    text = _DOT_GROUPS.sub(lambda match: match[0].replace(".", ""), _spaced(text))
    return _COMMA.sub(r"\1.\2", text)


def _day_first(match: re.Match[str]) -> str:
    return _iso(match, match[3], match[2], match[1])


def _month_first(match: re.Match[str]) -> str:
    return _iso(match, match[3], match[1], match[2])


def _converted(text: str) -> str:
    """The text with durations in seconds, lengths in metres, weights in grams, and percent as shares of 1."""

    def base(match: re.Match[str]) -> str:
        name = match.lastgroup or ""
        amount = Decimal(match[1].replace(",", "")) * _UNIT[name][1]
        return f"{amount.normalize():f} {_KINDS.get(name, 'metres')}"

    text = _ALONE.sub(lambda match: str(SMALL[match[0].casefold()]), text)
    text = _AMOUNT.sub(base, text)
    return _ADDED.sub(lambda match: f"{int(match[1]) + int(match[2])} seconds", text)
