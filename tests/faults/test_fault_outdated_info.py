"""The answer is from some time ago."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from hypothesis import given

from chaoslab.base.dice import Dice
from chaoslab.core import json_values
from chaoslab.faults.meaning.outdated_info import OutdatedInfo
from tests.faults.meaning_parts import (
    JSON,
    SEEDS,
    WEATHER,
    keeps_the_laws,
    leaves_others_alone,
    refuses,
    returned,
    told,
)


def test_moments_are_so_many_days_earlier_and_numbers_have_moved() -> None:
    got = told(OutdatedInfo(age_days=31), WEATHER)
    assert (got["city"], got["sky"], got["at"]) == ("Oslo", "clear", "2026-05-01T09:00:00Z")
    assert 0 < abs(got["temp"] - 20.5) <= 1
    assert got["humidity"] != 48
    older = told(OutdatedInfo(age_days=365), WEATHER)
    assert abs(older["temp"] - 20.5) > abs(got["temp"] - 20.5)


def test_moments_of_all_forms_move() -> None:
    assert told(OutdatedInfo(age_days=1), {"at": 1_780_304_400}) == {"at": 1_780_304_400 - 86_400}
    assert returned(OutdatedInfo(age_days=1), [date(2026, 3, 1)]) == [date(2026, 2, 28)]
    assert told(OutdatedInfo(age_days=36_500), "0001-01-01") != "0001-01-01"  # the calendar begins there


def test_a_text_without_both_is_another_one() -> None:
    assert told(OutdatedInfo(), {"sky": "clear"})["sky"] in ("rainy", "cloudy", "sunny", "snowy")


def test_the_age_is_drawn_from_a_day_to_two_years() -> None:
    ages = {OutdatedInfo().draw(Dice(n)).age_days for n in range(300)}
    assert (min(ages), max(ages) > 500, max(ages) <= 730) == (1, True, True)


@given(JSON, SEEDS)
def test_any_answer_that_is_changed_is_another_one(value: Any, seed: int) -> None:
    injected = keeps_the_laws(OutdatedInfo().draw(Dice(seed)), value)
    assert injected or not (json_values.leaves(value))


def test_errors_models_and_replies_without_a_value_pass_untouched() -> None:
    leaves_others_alone(OutdatedInfo())


@pytest.mark.parametrize(
    ("params", "line"),
    [
        ({"severity": 2}, "severity of outdated_info is 2: it should be a number from -1 to 1"),
        ({"age_days": -3}, "age_days of outdated_info is -3: it should be a whole number from 0 to 36500"),
    ],
)
def test_bad_parameters_have_one_clear_line(params: dict[str, Any], line: str) -> None:
    refuses("outdated_info", params, line)
