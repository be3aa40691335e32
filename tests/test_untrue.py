"""Another value in the place of a true one: always another, of the same type and form, by little or by far."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaoslab.base.dice import Dice
from chaoslab.core.untrue import kind, other_id, other_number, untrue

SEVERITIES = st.floats(0, 1)
VALUES: Any = st.one_of(
    st.booleans(), st.integers(), st.floats(), st.text(min_size=1), st.dates().map(str),
    st.datetimes().map(lambda moment: moment.isoformat() + "Z"), st.integers(0, 10**30).map(str), st.emails(),
    st.uuids(), st.uuids().map(str), st.dates(), st.datetimes(), st.decimals(),
    st.integers(1_000_000_000, 2_100_000_000), st.sampled_from(["https://example.org", "http://a.b/c?d=1"]),
)  # fmt: skip


@given(VALUES, SEVERITIES, st.integers())
def test_it_is_always_another_one_of_the_same_type(value: Any, severity: float, seed: int) -> None:
    made = untrue(value, severity, Dice(seed))
    assert type(made) is type(value)
    assert repr(made) != repr(value)
    assert repr(made) == repr(untrue(value, severity, Dice(seed)))


@pytest.mark.parametrize(
    ("value", "sort"),
    [
        (True, "flag"), (7, "number"), (7.5, "number"), (1_780_304_400, "moment"), (1_780_304_400_000, "moment"),
        ("2026-06-01", "moment"), ("2026-06-01T10:00:00Z", "moment"), (date(2026, 6, 1), "moment"), ("36", "number"),
        ("-3.5", "number"), ("ord_123", "id"), ("A-17", "id"), ("3f2a", "id"), ("https://a.b/c", "url"),
        ("a@b.org", "email"), ("Oslo", "text"), ("two words", "text"), (UUID(int=7), "id"), (Decimal("3.5"), "number"),
    ],
)  # fmt: skip
def test_a_value_is_known_by_its_type_and_form(value: Any, sort: str) -> None:
    assert kind(value) == sort


def distance(value: float, severity: float) -> float:
    return max(abs(float(untrue(value, severity, Dice(n))) - value) / value for n in range(20))


@pytest.mark.parametrize("value", [200, 200.0, 19.99])
def test_severity_0_is_off_by_a_percent_and_1_by_ten_times(value: float) -> None:
    assert distance(value, 0.0) <= 0.011
    assert 0.25 < distance(value, 0.5) < 0.4
    assert distance(value, 1.0) == pytest.approx(10, rel=0.01)


def test_days_grow_with_severity_from_one_to_a_year() -> None:
    days = {s: abs((date.fromisoformat(untrue("2026-06-01", s, Dice(1))) - date(2026, 6, 1)).days) for s in (0, 0.5, 1)}
    assert days == {0: 1, 0.5: 19, 1: 365}
    moved = untrue(datetime(2026, 6, 1, tzinfo=UTC), 0.0, Dice(1))
    assert abs((moved - datetime(2026, 6, 1, tzinfo=UTC)).days) == 1
    assert abs(untrue(1_780_304_400, 0.0, Dice(1)) - 1_780_304_400) == 86_400


def differing(one: str, other: str) -> int:
    return sum(a != b for a, b in zip(one, other, strict=True))


def test_an_id_keeps_its_form() -> None:
    assert differing("ord_1234", untrue("ord_1234", 0.0, Dice(1))) == 1
    far = untrue("ord_1234", 1.0, Dice(1))
    assert differing("ord_1234", far) == 7
    assert (far[3], far[4:].isdigit(), far[:3].isalpha()) == ("_", True, True)


def test_a_far_link_or_address_is_at_a_host_that_cannot_exist() -> None:
    assert untrue("https://example.org/a/7", 0.0, Dice(1)).startswith("https://example.org/a/")
    assert untrue("https://example.org/a/7", 1.0, Dice(1)).startswith("https://www.invalid/")
    assert untrue("ana@example.org", 0.0, Dice(1)).endswith("@example.org")
    assert untrue("ana@example.org", 1.0, Dice(1)).endswith("@mail.invalid")


@pytest.mark.parametrize(
    ("text", "among"),
    [
        ("Paid", {"Unpaid", "Refunded"}),
        ("EUR", {"USD", "GBP", "CHF"}),
        ("The shop is there", {"The shop is not there"}),
        ("It lands at 18.", {"It lands at 17.", "It lands at 19."}),
        ("Due 2026-06-01!", {"Due 2026-05-31!", "Due 2026-06-02!"}),
    ],
)
def test_a_near_text_is_a_lie_that_reads_well(text: str, among: set[str]) -> None:
    assert {untrue(text, 0.0, Dice(n)) for n in range(40)} == among


def test_all_numbers_of_a_text_are_others_at_severity_1() -> None:
    made = untrue("3 of 17 are paid", 1.0, Dice(1)).split()
    assert (made[0] != "3", made[2] != "17", made[4] in ("unpaid", "refunded")) == (True, True, True)


@pytest.mark.parametrize(
    ("value", "severity", "made"),
    [(1_000_000, 0.0, 10_000), (1_000_000, 1.0, 10_000_000), (1_000_000, 0.5, 316_000), (3, 0.0, 1), (0, 1.0, 1)],
)
def test_a_whole_number_is_off_by_a_hundredth_to_ten_times(value: int, severity: float, made: int) -> None:
    for seed in range(9):
        assert abs(other_number(value, severity, Dice(seed)) - value) == made
        assert other_number(-value, severity, Dice(seed)) <= -value + (value == 0)


def test_a_text_without_a_letter_or_a_digit_is_no_id_and_stays() -> None:
    assert other_id("–·–", 1.0, Dice(1)) == "–·–"
