"""Days and times in plain English, relative to the day in the system prompt. "next Tuesday" is the Tuesday of next week
(weeks begin on Monday); "on Tuesday" is the first one after today. An hour from 1 to 6 without am or pm is in the
afternoon. An event without an end lasts an hour."""

import re
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTHS = [
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
]  # fmt: skip
_MONTH = "|".join(f"{month[:3]}(?:{month[3:]})?" for month in _MONTHS) + "|sept"
_NUMBER = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "ten": 10}
_N = r"\d+|" + "|".join(_NUMBER)
# A number within a longer time or before % is no hour.
_CLOCK = r"(?:(\d{1,2})(?:[:.](\d\d))?\s*(am|pm|o'clock|h)?(?![\d:%])|(noon|midday|midnight))"
_RANGE = re.compile(rf"\b(?:from|between)?\s*{_CLOCK}\s*(?:to|until|till|and|-|–)\s*{_CLOCK}", re.I)
_AT = re.compile(
    rf"\b(?:at|by|around|from)\s+{_CLOCK}|\b(\d{{1,2}})(?::(\d\d))?\s*(am|pm)\b|\b(\d{{1,2}}):(\d\d)\b|\b(noon"
    r"|midday|midnight)\b",
    re.I,
)
_LASTING = re.compile(
    (
        rf"\b(?:(?:for|lasting)\s+)?(?:(half an)\s+hour|({_N})(?:\s+and\s+a\s+half)?[\s-]*(hours?|"
        rf"minutes?|mins?|h)\b(?:\s+(and a half))?)(?:\s+long)?"
    ),
    re.I,
)
_PARTS = {
    "morning": (time(9), time(0), time(12)),
    "afternoon": (time(14), time(12), time(18)),
    "evening": (time(19), time(18), time(23)),
}


@dataclass(frozen=True)
class NamedDay:
    """A day (or a span of days up to `last_day`), perhaps with times. `rest`: the text without the words about time."""

    rest: str
    day: date | None = None
    last_day: date | None = None
    start: time | None = None
    end: time | None = None
    lasting: timedelta | None = None

    def to_iso_bounds(self) -> tuple[str, str]:
        """The bounds of the days as ISO date-times; the second is the midnight after. Needs a day."""
        assert self.day is not None
        until = (self.last_day or self.day) + timedelta(days=1)
        return f"{self.day.isoformat()}T00:00:00", f"{until.isoformat()}T00:00:00"


def parse_today_line(system: str) -> datetime | None:
    """The moment in a line such as `Today is Monday 2026-06-01, 09:00 UTC.`"""
    match = re.search(r"(?:today|now|date)\b[^\d\n]{0,40}(\d{4}-\d\d-\d\d)(?:[T,\s]+(\d\d:\d\d))?", system, re.I)
    try:
        return datetime.fromisoformat(f"{match[1]}T{match[2] or '00:00'}") if match else None
    except ValueError:
        return None


def parse_days_and_times(text: str, now: datetime | None) -> NamedDay:
    """The text's days and times; without `now` only absolute dates are recognised."""
    day, last_day, rest = _parse_day(text, now.date() if now else None)
    lasting, rest = _parse_duration(rest)
    start = end = None
    if match := _RANGE.search(rest):
        start, end = _parse_clock(*match.groups()[:4]), _parse_clock(*match.groups()[4:])
        # “from 10 to 8” ends in the evening, “from 10pm to 1am” on the next day.
        if start and end and end < start < time(12) and not match[7]:
            end = end.replace(hour=end.hour + 12)
        # In “from 3 to 5 pm” the pm holds for both, in “from 11 to 2 pm” for the end alone.
        if (
            start
            and end
            and match[3] is None
            and start.hour < 12
            and match[7] == "pm"
            and int(match[1] or 12) < int(match[5] or 12) < 12
        ):
            start = start.replace(hour=start.hour + 12)
        rest = _remove_match(rest, match)
    elif match := _AT.search(rest):
        groups = match.groups()
        start = (
            _parse_clock(*groups[:4])
            or _parse_clock(groups[4], groups[5], groups[6], None)
            or _parse_clock(groups[7], groups[8], "h", None)
            or _parse_clock(None, None, None, groups[9])
        )
        rest = _remove_match(rest, match) if start else rest
    if match := re.search(r"\b(?:in the|this|tomorrow|every)?\s*\b(morning|afternoon|evening)\b", rest, re.I):
        part_of_day = match[1].lower()
        if start and part_of_day != "morning" and start.hour < 12:  # tonight at 8
            start = start.replace(hour=start.hour + 12)
        start = start or _PARTS[part_of_day][0]
        rest = _remove_match(rest, match)
    return NamedDay(re.sub(r"\s{2,}", " ", rest).strip(" ,.?!"), day, last_day, start, end, lasting)


def _remove_match(text: str, match: re.Match[str]) -> str:
    return f"{text[: match.start()].rstrip()} {text[match.end() :].lstrip()}".strip()


def _parse_clock(hour: str | None, minute: str | None, half: str | None, word: str | None) -> time | None:
    if word:
        return time(0) if word.lower() == "midnight" else time(12)
    if hour is None or int(hour) > 23 or int(minute or 0) > 59:
        return None
    value, mark = int(hour), (half or "").lower()
    if mark == "pm" and value < 12:
        value += 12
    elif mark == "am" and value == 12:
        value = 0
    # “03:00” is the time of a 24-hour clock.
    elif not mark and 1 <= value <= 6 and not hour.startswith("0"):
        value += 12
    return time(value % 24, int(minute or 0))


def _parse_duration(text: str) -> tuple[timedelta | None, str]:
    match = _LASTING.search(text)
    # “in two hours” is a start, not a length.
    if not match or re.search(r"\bin\s+$", text[: match.start()], re.I):
        return None, text
    if match[1]:
        return timedelta(minutes=30), _remove_match(text, match)
    amount = float(_NUMBER.get(match[2].lower()) or match[2])
    if match[4] or "and a half" in match[0]:
        amount += 0.5
    return timedelta(hours=amount) if match[3].lower().startswith("h") else timedelta(minutes=amount), _remove_match(
        text, match
    )


def _parse_day(text: str, today: date | None) -> tuple[date | None, date | None, str]:
    def search_text(pattern: str) -> re.Match[str] | None:
        return re.search(pattern, text, re.I)

    if match := search_text(r"\b(?:on\s+)?(\d{4})-(\d\d)-(\d\d)(?:T|\b)"):
        return _make_date(int(match[1]), int(match[2]), int(match[3])), None, _remove_match(text, match)
    month_first = (
        rf"\b(?:on\s+)?(?:the\s+)?(?P<month>{_MONTH})\.?\s+(?P<day>\d{{1,2}})(?:st|nd|rd"
        rf"|th)?\b(?:,?\s+(?P<year>\d{{4}}))?(?!:)"
    )
    day_first = (
        rf"\b(?:on\s+)?(?:the\s+)?(?P<day>\d{{1,2}})(?:st|nd|rd"
        rf"|th)?\s+(?:of\s+)?(?P<month>{_MONTH})\b(?:,?\s+(?P<year>\d{{4}}))?"
    )
    if match := search_text(month_first) or search_text(day_first):
        month = next(n for n, name in enumerate(_MONTHS, 1) if name.startswith(match["month"][:3].lower()))
        year = int(match["year"]) if match["year"] else (today.year if today else None)
        named_date = _make_date(year, month, int(match["day"])) if year else None
        # A date without a year is the next of that name.
        if named_date and today and not match["year"] and named_date < today:
            named_date = _make_date(named_date.year + 1, month, named_date.day)
        return (
            named_date,
            None,
            # In “Tuesday, 3 June” the date decides, and the weekday is no part of a title.
            re.sub(rf"\b(?:on\s+)?(?:{'|'.join(_DAYS)}),?\s*$", "", text[: match.start()], flags=re.I)
            + " "
            + text[match.end() :],
        )
    if today is None:
        return None, None, text
    monday = today - timedelta(days=today.weekday())
    weekdays = "|".join(_DAYS)
    if match := search_text(r"\b(?:the\s+)?day after tomorrow\b"):
        return today + timedelta(days=2), None, _remove_match(text, match)
    if match := search_text(r"\b(?:for\s+|later\s+)?(today|tonight|tomorrow|yesterday)(?:'s)?\b"):
        word = match[1].lower()
        shift = {"tomorrow": 1, "yesterday": -1}.get(word, 0)
        # Tonight is a part of the day too, which is read from the rest.
        return (
            today + timedelta(days=shift),
            None,
            _remove_match(text, match) + (" evening" if word == "tonight" else ""),
        )
    if match := search_text(rf"\b(?:on\s+|for\s+)?(this\s+|next\s+|coming\s+)?({weekdays})(?:'s)?(\s+next week)?\b"):
        target = _DAYS.index(match[2].lower())
        if (match[1] or "").strip().lower() == "next" or match[3]:
            return monday + timedelta(days=7 + target), None, _remove_match(text, match)
        return today + timedelta(days=(target - today.weekday() - 1) % 7 + 1), None, _remove_match(text, match)
    if match := search_text(rf"\bin\s+({_N})\s+(day|week)s?\b"):
        count = int(_NUMBER.get(match[1].lower()) or match[1])
        return (
            today + timedelta(days=count * (7 if match[2].lower() == "week" else 1)),
            None,
            _remove_match(text, match),
        )
    if match := search_text(r"\b(?:for\s+|during\s+|in\s+)?(this|next|the coming)\s+week(end)?\b"):
        first = monday + timedelta(days=7 if match[1].lower() == "next" else 0)
        if match[2]:
            return first + timedelta(days=5), first + timedelta(days=6), _remove_match(text, match)
        # The days of this week that are over are not meant.
        return max(first, today), first + timedelta(days=6), _remove_match(text, match)
    return None, None, text


def _make_date(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None
