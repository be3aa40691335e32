"""Numbers, dates, times of the day and amounts in one notation: groups of digits, words and multipliers; "4:45 PM" and
"a quarter to five in the afternoon" are 16:45; 20 °C is 68 °F, and 12 miles are no 12 km."""

import re
from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from itertools import pairwise
from typing import NamedTuple

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


_HOURS = {word: number for word, number in SMALL.items() if 1 <= number <= 12}
_PARTS = {"quarter": 15, "half": 30, "five": 5, "ten": 10}
_H = rf"(?P<{{}}>1[0-2]|0?[1-9]|{'|'.join(_HOURS)})"
_DAY = (
    r"(?: ?(?P<x>[ap])\.?m\b\.?"
    r"| (?:in the |this |tomorrow |yesterday )(?:early |late )?(?P<day>morning|afternoon|evening)\b"
    r"| at (?P<night>night)\b)"
)
_SPOKEN = re.compile(
    r"\b(?:a )?(?:(?P<part>quarter|half(?= past)|(?:five|ten|20|25)(?= past|(?<=\bat \w{4}) to|(?<=\bat \w\w\w) to"
    r"|(?<=\bat \d\d) to)|(?:five|ten|[1-5]?\d)(?= minutes))(?: minutes)? (?P<side>past|after|to|before)"
    rf" {_H.format('h')}(?![:.]?\w)|{_H.format('o')}(?= ?o'clock))(?: ?o'clock\b)?{_DAY}?",
    re.IGNORECASE,
)
_WRITTEN = re.compile(
    rf"\b(?P<h>1[0-2]|0?[1-9])(?:[:.](?P<m>[0-5]\d))?{_DAY}",
    re.IGNORECASE,
)
_NAMED = re.compile(r"(?<!high )\b(?:12 )?(?:(?P<noon>noon|midday)|midnight)\b", re.IGNORECASE)
_FULL = re.compile(
    r"(?<=\bat )(\d{1,2})(?=[.,;!?]?(?:\s|$))(?! ?[^\W\d]* ?(?:%|°|degrees|per|euros?|km|points))", re.IGNORECASE
)
_MAY = re.compile(
    r"past|quarter|o['’]clock|noon|mid(?:night|day)|minutes (?:to|before)|(?:five|ten|2[05]) to", re.IGNORECASE
)


def clock(text: str, like: str = "") -> str:
    """The text with each time of the day in 24 hours: "4:45 PM" is "16:45". `like`: a text that decides between the
    morning and the afternoon where the words do not tell."""
    if _MAY.search(text):
        told = _hours_and_minutes(clock(like)) if like else frozenset()
        text = _SPOKEN.sub(lambda match: _spoken(match, told), text.replace("’", "'"))
        text = _NAMED.sub(lambda match: "12:00" if match["noon"] else "00:00", text)
    if "m" in text or "M" in text or " night" in text:
        text = _WRITTEN.sub(_written, text)
    return _FULL.sub(lambda match: _full(match, like), text) if ":00" in like else text


def _full(match: re.Match[str], like: str) -> str:
    return f"{match[1]}:00" if re.search(rf"(?<![\d:])0?{match[1]}:00", like) else match[0]


def _spoken(match: re.Match[str], told: frozenset[str]) -> str:
    part, hour = (match["part"] or "").casefold(), (match["h"] or match["o"]).casefold()
    hours, minutes = _HOURS.get(hour) or int(hour), _PARTS.get(part) or int(part or 0)
    if (match["side"] or "").casefold() in ("to", "before"):
        hours, minutes = hours - 1, 60 - minutes
    half = _half(match, hours)
    if half is not None:
        return f"{hours % 12 + half:02d}:{minutes:02d}"
    sooner, later = f"{hours or 12:02d}:{minutes:02d}", f"{hours % 12 + 12}:{minutes:02d}"
    return later if later in told and sooner.removeprefix("0") not in told else sooner


def _hours_and_minutes(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"(?<!\d)0?([1-9]\d?:\d\d)", text))


def _written(match: re.Match[str]) -> str:
    alone = not match["x"] and match["m"] is None
    if alone and not match.string[max(0, match.start() - 4) : match.start()].casefold().endswith((" at ", "\nat ")):
        return match[0]  # "12 in the morning" counts something
    half = _half(match, int(match["h"])) or 0
    return f"{int(match['h']) % 12 + half:02d}:{match['m'] or '00'}"


def _half(match: re.Match[str], hours: int) -> int | None:
    """The hours to be added for the half of the day that is named; None if none is."""
    if match["night"]:
        return 12 if 5 <= hours < 12 else 0
    day = (match["x"] or match["day"] or "").casefold()
    return None if not day else 12 if day in ("p", "afternoon", "evening") else 0


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
