"""Runs of the first lab that were appended to one file are told apart by what the records say."""

from __future__ import annotations

import pytest

from chaoslab.record.legacy_logs import Entry, apart

NOON_S = 1_780_315_200.0
"""2026-06-01T12:00:00Z."""


def attempt(prompt: str, number: int | None = None) -> Entry:
    return Entry("attempt", None, {"prompt": prompt} | ({} if number is None else {"prompt_attempt_no": number}))


@pytest.mark.parametrize(
    ("asked", "runs"),
    [
        ([("a", 1), ("b", 1), ("a", 1), ("b", 1)], [2, 2]),
        ([("a", 1), ("a", 2), ("b", 1)], [3]),
        ([("a", None), ("b", None), ("a", None)], [2, 1]),
        ([("a", None), ("a", 1)], [2]),
    ],
)
def test_a_run_begins_where_the_first_prompt_is_tried_for_the_first_time(
    asked: list[tuple[str, int | None]], runs: list[int]
) -> None:
    assert [len(part.attempts) for part in apart([attempt(*each) for each in asked])] == runs


@pytest.mark.parametrize(("ahead_h", "shift_h"), [(2, 2), (5.5, 5.5), (-9.5, -9.5), (14, 14), (14.5, 0), (-30, 0)])
def test_times_are_moved_by_a_time_zone_and_by_no_more(ahead_h: float, shift_h: float) -> None:
    """A time that is further away than any zone is that of another clock."""
    entry = Entry("tool", NOON_S + ahead_h * 3600, {"network_end": "2026-06-01T12:00:00+00:00"})
    (part,) = apart([entry])
    assert part.shift_s == shift_h * 3600


def test_a_new_run_begins_behind_the_last_record_that_was_cut_or_else_after_the_longest_pause() -> None:
    def entries(*cut: int) -> list[Entry]:
        numbers = [(0, 1), (1, None), (2, None), (9, None), (10, None), (11, 1)]
        return [
            Entry("tool" if n is None else "processed", NOON_S + s, {"processed_count": n} if n else {}, place in cut)
            for place, (s, n) in enumerate(numbers)
        ]

    assert [len(part.info) for part in apart(entries(2, 4))] == [4, 2]
    assert [len(part.info) for part in apart(entries(2))] == [2, 4]
    assert [len(part.info) for part in apart(entries())] == [3, 3]
