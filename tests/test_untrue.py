"""Another value in the place of a true one: always another, of the same type and form, by little or by far."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaoslab.base.dice import Dice
from chaoslab.core.untrue import classify_value, make_untrue_value

SEVERITIES = st.floats(0, 1)
VALUES: Any = st.one_of(
    st.booleans(), st.integers(), st.floats(), st.text(min_size=1), st.dates().map(str),
    st.datetimes().map(lambda moment: moment.isoformat() + "Z"), st.integers(0, 10**30).map(str), st.emails(),
    st.uuids(), st.uuids().map(str), st.dates(), st.datetimes(), st.decimals(),
    st.integers(1_000_000_000, 2_100_000_000), st.sampled_from(["https://example.org", "http://a.b/c?d=1"]),
)  # fmt: skip


@given(VALUES, SEVERITIES, st.integers())
def test_it_is_always_another_one_of_the_same_type(value: Any, severity: float, seed: int) -> None:
    made = make_untrue_value(value, severity, Dice(seed))
    assert type(made) is type(value)
    assert repr(made) != repr(value)
    assert repr(made) == repr(make_untrue_value(value, severity, Dice(seed)))


@pytest.mark.parametrize(
    ("value", "sort", "made"),
    [
        (True, "flag", [False] * 6), (False, "flag", [True] * 6), (-7, "number", [-8, -8, -9, -9, -77, -77]),
        (0, "number", [1] * 6), (1, "number", [2, 2, 2, 2, 11, 11]), (2, "number", [1, 3, 1, 3, 22, 22]),
        (200, "number", [198, 202, 137, 263, 2200, 2200]),
        (1_000_000_000, "moment", [1_000_086_400, 999_913_600, 1_001_641_600, 998_358_400, 1_031_536_000,
         968_464_000]),
        (1_000_000_000_000, "moment", [1_000_086_400_000, 999_913_600_000, 1_001_641_600_000, 998_358_400_000,
         1_031_536_000_000, 968_464_000_000]),
        (7.5, "number", [7.4, 7.6, 5.1, 9.9, 82.5, 82.5]), (-7.5, "number", [-7.4, -7.6, -5.1, -9.9, -82.5, -82.5]),
        (0.0, "number", [0.1] * 6),
        (1e+300, "number", [1.0100000000000001e+300, 1.0100000000000001e+300, 1.3162277660168381e+300,
         1.3162277660168381e+300, 1.1e+301, 1.1e+301]),
        (-1e+308, "number", [-1.01e+308, -1.01e+308, -1.316227766016838e+308, -1.316227766016838e+308, 0.0, 0.0]),
        (float("inf"), "number", [0.0] * 6), (float("nan"), "number", [0.0] * 6),
        (1.5e-07, "number", [1.515e-07, 1.515e-07, 1.9743416490252568e-07, 1.9743416490252568e-07,
         1.6499999999999999e-06, 1.6499999999999999e-06]),
        (0.1, "number", [0.2, 0.2, 0.2, 0.2, 1.1, 1.1]),
        (Decimal("3.50"), "number", [Decimal("3.47"), Decimal("3.53"), Decimal("2.40"), Decimal("4.60"),
         Decimal("38.50"), Decimal("38.50")]),
        (Decimal("-0.07"), "number", [Decimal("-0.06"), Decimal("-0.08"), Decimal("-0.05"), Decimal("-0.09"),
         Decimal("-0.77"), Decimal("-0.77")]),
        (Decimal("NaN"), "number", [Decimal("0")] * 6), (Decimal("0"), "number", [Decimal("1")] * 6),
        ("36", "number", ["35", "37", "25", "47", "396", "396"]),
        ("-3.5", "number", ["-3.4", "-3.6", "-2.4", "-4.6", "-38.5", "-38.5"]),
        ("007", "number", ["6", "8", "5", "9", "77", "77"]),
        ("2026-06-01T10:00:00Z", "moment", ["2026-06-02T10:00:00Z", "2026-05-31T10:00:00Z", "2026-06-20T10:00:00Z",
         "2026-05-13T10:00:00Z", "2027-06-01T10:00:00Z", "2025-06-01T10:00:00Z"]),
        ("9999-12-31", "moment", ["9999-12-30", "9999-12-30", "9999-12-12", "9999-12-12", "9998-12-31",
         "9998-12-31"]),
        ("2026-13-45", "moment", ["2026-13-41", "2026-13-47", "2026-13-40", "2026-13-47", "2026-13-40",
         "2026-13-48"]),
        (date(9999, 12, 31), "moment", [date(9999, 12, 30), date(9999, 12, 30), date(9999, 12, 12),
         date(9999, 12, 12), date(9998, 12, 31), date(9998, 12, 31)]),
        (datetime(2026, 6, 1, tzinfo=UTC), "moment", [datetime(2026, 6, 2, tzinfo=UTC),
         datetime(2026, 5, 31, tzinfo=UTC), datetime(2026, 6, 20, tzinfo=UTC), datetime(2026, 5, 13, tzinfo=UTC),
         datetime(2027, 6, 1, tzinfo=UTC), datetime(2025, 6, 1, tzinfo=UTC)]),
        ("ord_123", "id", ["ord_122", "ord_128", "ord_832", "ord_338", "tnf_832", "vph_338"]),
        ("3f2a", "id", ["3f1a", "3f3a", "7f1a", "8f3a", "7c1d", "8d3d"]),
        ("3F2A-9", "id", ["3F2A-2", "3F2A-2", "3F1A-2", "3F3A-2", "7P1P-2", "8Q3M-2"]),
        ("12-34", "text", ["12-33", "12-39", "12-43", "12-89", "68-43", "31-89"]),
        ("https://a.b/c/7", "url", ["https://a.b/c/1", "https://a.b/c/2", "https://www.invalid/c/1",
         "https://www.invalid/c/2", "https://www.invalid/e/1", "https://www.invalid/f/2"]),
        ("https://a.b", "url", ["https://a.b/6668", "https://a.b/4357", "https://www.invalid/6668",
         "https://www.invalid/4357", "https://www.invalid/6668", "https://www.invalid/4357"]),
        ("http://a.b/é", "url", ["http://a.b/é6668", "http://a.b/é4357", "http://www.invalid/é6668",
         "http://www.invalid/é4357", "http://www.invalid/é6668", "http://www.invalid/é4357"]),
        ("ana@example.org", "email", ["anf@example.org", "anh@example.org", "apf@mail.invalid", "aqh@mail.invalid",
         "tpf@mail.invalid", "vqh@mail.invalid"]),
        ("Oslo", "text", ["Tokyo", "Paris", "Tokyo", "Paris", "Tokyo", "Paris"]),
        ("PAID", "text", ["REFUNDED", "UNPAID", "REFUNDED", "UNPAID", "REFUNDED", "UNPAID"]),
        ("Paid", "text", ["Refunded", "Unpaid", "Refunded", "Unpaid", "Refunded", "Unpaid"]),
        ("–·–", "text", ["–·– (no)"] * 6), ("ab", "text", ["ae", "aa", "ae", "aa", "ee", "ca"]),
        ("The shop is there", "text", ["The shop is not there"] * 6),
        ("Due 2026-06-01!", "text", ["Due 2026-05-31!", "Due 2026-05-31!", "Due 2026-05-13!", "Due 2026-05-13!",
         "Due 2025-06-01!", "Due 2025-06-01!"]),
        ("3 of 17 are paid", "text", ["2 of 17 are paid", "2 of 17 are paid", "2 of 12 are paid", "2 of 22 are paid",
         "33 of 187 are refunded", "33 of 187 are unpaid"]),
        ("ab cd ef", "text", ["ae cd ef", "aa cd ef", "ae cf ef", "aa cc ef", "ee df cb", "ca ec be"]),
        ("to Ana by Jo", "text", ["to Anw by Jo", "to Anu by Jo", "to Azw by Jo", "to Aqu by Jo", "to Kzw by Jo",
         "to Rqu by Jo"]),
        ("The 12th of May is over", "text", ["The 19th of May is over", "The 10th of May is over",
         "The 39th of May is over", "The 90th of May is over", "The 39se of May is over", "The 90pt of May is over"]),
        ("²", "text", ["²0"] * 6), ("order 3 at 9:30 is open and paid", "text", ["order 3 at 9:37 is open and paid",
         "order 2 at 9:30 is open and paid", "order 3 at 9:87 is closed and paid", "order 2 at 9:24 is open and paid",
         "order 33 at 1:87 is closed and unpaid", "order 33 at 0:24 is closed and unpaid"]),
        (UUID("00000000-0000-0000-0000-000000000007"), "id", [UUID("00000000-0000-0000-0000-000000000001"),
         UUID("00000000-0000-0000-0000-000000000003"), UUID("00000000-0000-0000-8386-314977619551"),
         UUID("00000000-0000-0000-2866-287446229123"), UUID("76258335-5571-1616-8386-314977619551"),
         UUID("86343389-8528-3612-2866-287446229123")]),
        ("due ٣ now", "text", ["due ٣ now0"] * 6),
    ],
)  # fmt: skip
def test_a_value_is_another_by_its_sort_severity_and_dice(value: Any, sort: str, made: list[Any]) -> None:
    assert classify_value(value) == sort
    assert repr(
        [make_untrue_value(value, severity, Dice(seed)) for severity in (0.0, 0.5, 1.0) for seed in (7, 2)]
    ) == repr(made)


def test_a_number_is_at_most_ten_times_off_and_keeps_its_sign() -> None:
    assert [make_untrue_value(value, 0.7, Dice(7)) for value in (3, 2.0, Decimal(5))] == [6, 4.5, Decimal(11)]


@pytest.mark.parametrize(
    ("value", "sort"),
    [
        (999_999_999, "number"), (2_099_999_999, "moment"), (2_100_000_000, "number"), (999_999_999_999, "number"),
        (2_099_999_999_999, "moment"), (2_100_000_000_000, "number"), ("9" * 300, "number"), ("9" * 301, "text"),
        ("2026-06-01", "moment"), ("A-17", "id"), ("two words", "text"),
    ],
)  # fmt: skip
def test_a_value_is_known_by_its_type_and_form(value: Any, sort: str) -> None:
    assert classify_value(value) == sort


def test_a_number_of_many_digits_in_a_text_is_an_id() -> None:
    number, id_ = (make_untrue_value(f"due {'1' * digits}", 0.0, Dice(7)) for digits in (300, 301))
    assert (number[:8], id_[:-1]) == ("due 1122", f"due {'1' * 300}")


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
    assert {make_untrue_value(text, 0.0, Dice(n)) for n in range(40)} == among
