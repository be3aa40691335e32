"""Numbers and dates in other notations: groups of digits, words, and multipliers."""

import re
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


def plainly(text: str) -> str:
    """The text with its numbers in digits and its dates in ISO 8601, where they can be read in one way only."""
    if text.isascii() and not any(c.isalnum() for c in text):
        return text
    text = _GROUPED.sub(lambda match: re.sub(r"\D", "", match[0]), text)
    text = _CONTINENTAL.sub(lambda match: match[0].replace(".", "").replace(",", "."), text)
    text = _DOTTED_DATE.sub(lambda match: _iso(match, match[3], match[2], match[1]), text)
    text = _YEAR_FIRST.sub(lambda match: _iso(match, match[1], match[2], match[3]), text)
    text = _HALVES.sub(lambda match: _HALF_HOURS[" ".join(match[0].casefold().split()[-2:])], text)
    text = _COUNT.sub(_counted, text)
    text = _MANY.sub(lambda match: _times(match[1], match[2].casefold()), text)
    text = _MANY_SHORT.sub(lambda match: _times(match[1], _SHORT[match[2].casefold()]), text)
    text = _BELOW.sub(lambda match: f"-{match[1]}{match[2] or ''}{match[3] or ''}", text)
    return _MINUS.sub("-", text)


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
