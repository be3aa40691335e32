"""Runs of the first lab that were appended to one file are told apart by what the records say."""

from math import isnan

import pytest

from chaoslab.record.legacy_logs import LegacyRecord, LegacyRun, answered, apart, lasted, prompts_of, text

NOON_S = 1_780_315_200.0
"""2026-06-01T12:00:00Z."""


def attempt(prompt: str, number: int | None = None) -> LegacyRecord:
    return LegacyRecord("attempt", None, {"prompt": prompt} | ({} if number is None else {"prompt_attempt_no": number}))


@pytest.mark.parametrize(
    ("tries", "runs"),
    [
        ([("a", 1), ("b", 1), ("a", 1), ("b", 1)], [2, 2]),
        ([("a", 1), ("a", 2), ("b", 1)], [3]),
        ([("a", None), ("b", None), ("a", None)], [2, 1]),
        ([("a", None), ("a", 1)], [2]),
    ],
)
def test_a_run_begins_where_the_first_prompt_is_tried_for_the_first_time(
    tries: list[tuple[str, int | None]], runs: list[int]
) -> None:
    assert [len(part.attempts) for part in apart([attempt(*each) for each in tries])] == runs


@pytest.mark.parametrize(("ahead_h", "shift_h"), [(2, 2), (5.5, 5.5), (-9.5, -9.5), (14, 14), (14.5, 0), (-30, 0)])
def test_times_are_moved_by_a_time_zone_and_by_no_more(ahead_h: float, shift_h: float) -> None:
    """A time that is further away than any zone is that of another clock."""
    entry = LegacyRecord("tool", NOON_S + ahead_h * 3600, {"network_end": "2026-06-01T12:00:00+00:00"})
    (part,) = apart([entry])
    assert part.shift_s == shift_h * 3600


def test_a_new_run_begins_behind_the_last_record_that_was_cut_or_else_after_the_longest_pause() -> None:
    def entries(*cut: int) -> list[LegacyRecord]:
        numbers = [(0, 1), (1, None), (2, None), (9, None), (10, None), (11, 1)]
        return [
            LegacyRecord(
                "tool" if n is None else "processed", NOON_S + s, {"processed_count": n} if n else {}, place in cut
            )
            for place, (s, n) in enumerate(numbers)
        ]

    assert [len(part.info) for part in apart(entries(2, 4))] == [4, 2]
    assert [len(part.info) for part in apart(entries(2))] == [2, 4]
    assert [len(part.info) for part in apart(entries())] == [3, 3]


@pytest.mark.parametrize(
    ("value", "lasts_s"),
    [
        (1.5, 1.5), (0, 0.0), ("1.5 s", 1.5), ("2", 2.0), ("0:00:01.5", 1.5), ("02:05", 125.0), ("1:01:01 s", 3661.0),
        (-1, None), (1e7, 1e7), (1.1e7, None), ("soon", None), (True, None), (None, None), ("nan", None),
    ],
)  # fmt: skip
def test_a_duration_is_read_in_all_its_spellings(value: object, lasts_s: float | None) -> None:
    assert lasted(value) == lasts_s


@pytest.mark.parametrize(
    ("status", "response", "right"),
    [
        (200, "", True), ("399", "", True), (400, "a", False), (199, "a", False), ("OK ", "", True),
        ("success", "", True), (True, "", True), ("200", "", True), (300, "", True), ("?", "a", False),
        ("validation error", "a", True), ("validation error", " ", False), ("failed", "a", False), (None, "a", True),
        (None, " ", False), (None, None, False), (None, {"é": 1}, True),
    ],
)  # fmt: skip
def test_an_attempt_ended_with_an_answer_or_without(status: object, response: object, right: bool) -> None:
    assert answered(LegacyRecord("attempt", None, {"status": status, "response": response})) is right


def test_a_field_that_should_be_text_is_text() -> None:
    assert [text(value) for value in ("a", None, {"é": 1}, 2)] == ["a", "", '{"é": 1}', "2"]


def tried(
    prompt: str, start_s: float | None = None, end_s: float | None = None, duration: object = None
) -> LegacyRecord:
    told = {"start_time": start_s, "end_time": end_s, "duration": duration}
    return LegacyRecord(
        "attempt", None, {"prompt": prompt} | {name: value for name, value in told.items() if value is not None}
    )


def processed(at_s: float | None = None, index: int | None = None) -> LegacyRecord:
    return LegacyRecord("processed", at_s, {} if index is None else {"prompt_index": index})


AT = NOON_S


@pytest.mark.parametrize(
    ("info", "attempts", "found"),
    [
        ([], [], []),
        ([processed(AT), processed(AT + 5)], [], [("p1.r1", "", 0, 0), ("p2.r1", "", 0, 5)]),
        (
            [processed(AT, 4), processed(AT + 1), processed(AT + 2, 4)],
            [],
            [("p4.r1", "", 0, 0), ("p5.r1", "", 0, 1), ("p4.r2", "", 1, 2)],
        ),
        (
            [processed(AT + 9)],
            [tried("a", AT, AT + 8), tried("b", AT + 8.5, AT + 30)],
            [("p1.r1", "a", 0, 9), ("p2.r1", "b", 8.5, 30)],
        ),
        (
            [processed(AT + 21)],
            [tried("a", AT, AT + 8), tried("b", AT + 9, AT + 20)],
            [("p1.r1", "a", 0, 8), ("p2.r1", "b", 9, 21)],
        ),
        ([processed(AT + 3)], [tried("a", AT, AT + 4.5)], [("p1.r1", "", 0, 3), ("p2.r1", "a", 0, 4.5)]),
        ([processed(AT + 3)], [tried("a", AT, AT + 4)], [("p1.r1", "a", 0, 4)]),
        ([], [tried("a", AT, AT + 1), tried("a", AT + 2, AT + 4)], [("p1.r1", "a", 0, 4)]),
    ],
)
def test_prompts_are_told_by_their_marks_and_their_attempts(
    info: list[LegacyRecord], attempts: list[LegacyRecord], found: list[tuple[str, str, float, float]]
) -> None:
    prompts = prompts_of(LegacyRun(info, attempts))
    assert [(one.trial, one.text, one.since_s - AT, one.until_s - AT) for one in prompts] == found


@pytest.mark.parametrize(
    ("attempts", "took_s"),
    [
        ([tried("a", AT, AT + 2, 1.5), tried("a", AT + 3, AT + 7, 1)], 7.0), ([tried("a", AT + 2, AT, 1.5)], 1.5),
        ([tried("a", None, None, 1.5), tried("a", None, None, "2 s")], 3.5),
        ([tried("a", None, None, 1.5), tried("a")], None), ([tried("a")], None),
    ],
)  # fmt: skip
def test_a_prompt_took_as_long_as_its_times_tell_or_else_its_durations(
    attempts: list[LegacyRecord], took_s: float | None
) -> None:
    (one,) = prompts_of(LegacyRun([], attempts))
    assert one.took_s == took_s or (took_s is None and isnan(one.took_s))
