"""Days and times in words, seen from Monday 2026-06-01, 09:00."""

from datetime import date, datetime, time, timedelta

import pytest

from chaoslab.model._dates import parse_days_and_times, parse_today_line

NOW = datetime(2026, 6, 1, 9)


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("tomorrow", date(2026, 6, 2)),
        ("the day after tomorrow", date(2026, 6, 3)),
        ("on Friday", date(2026, 6, 5)),
        ("on Monday", date(2026, 6, 8)),
        ("next Tuesday", date(2026, 6, 9)),
        ("June 5th", date(2026, 6, 5)),
        ("on the 3rd of July 2027", date(2027, 7, 3)),
        ("January 2", date(2027, 1, 2)),
        ("in two weeks", date(2026, 6, 15)),
        ("this weekend", date(2026, 6, 6)),
        ("2026-12-24", date(2026, 12, 24)),
        ("February 31", None),
        ("someday", None),
    ],
)
def test_a_day_in_words_is_a_date(text: str, day: date | None) -> None:
    assert parse_days_and_times(f"lunch {text}", NOW).day == day


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("at 3pm", time(15), None),
        ("at 3", time(15), None),
        ("at 9", time(9), None),
        ("at 14:30", time(14, 30), None),
        ("from 10 to 11:30", time(10), time(11, 30)),
        ("from 2 to 3:30pm", time(14), time(15, 30)),
        ("between 11 and 1", time(11), time(13)),
        ("from 10 to 8", time(10), time(20)),
        ("from 10pm to 1am", time(22), time(1)),
        ("from 9 to 10 pm", time(21), time(22)),
        ("at noon", time(12), None),
        ("at 12am", time(0), None),
        ("at 99", None, None),
    ],
)
def test_a_time_in_words_is_a_time(text: str, start: time | None, end: time | None) -> None:
    said = parse_days_and_times(f"lunch {text}", NOW)
    assert (said.start, said.end) == (start, end)


@pytest.mark.parametrize(
    ("text", "minutes"),
    [("for 45 minutes", 45), ("for half an hour", 30), ("for two hours", 120), ("for an hour and a half", 90)],
)
def test_a_length_in_words_is_a_length(text: str, minutes: int) -> None:
    assert parse_days_and_times(f"lunch {text}", NOW).lasting == timedelta(minutes=minutes)


def test_what_remains_is_the_title() -> None:
    assert parse_days_and_times("lunch with Ana tomorrow at noon for 45 minutes", NOW).rest == "lunch with Ana"


def test_a_week_has_bounds() -> None:
    assert parse_days_and_times("this week", NOW).to_iso_bounds() == ("2026-06-01T00:00:00", "2026-06-08T00:00:00")


def test_the_day_comes_from_the_system_prompt_alone() -> None:
    assert parse_today_line("Be kind.\nToday is Monday 2026-06-01, 09:00 UTC.") == NOW
    assert parse_today_line("Be kind.") is parse_today_line("Today is 2026-13-41.") is None
    assert parse_days_and_times("tomorrow", None).day is None
