"""Times of the day in 24 hours: "4:45 PM", "a quarter to five in the afternoon" and "16:45" are one time."""

import re

from chaoslab.analysis.answers._notation import SMALL

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
