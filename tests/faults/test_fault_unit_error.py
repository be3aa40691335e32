"""The numbers are in another unit."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from chaoslab.base.dice import Dice
from chaoslab.faults.meaning.unit_error import UnitError
from tests.faults.meaning_parts import JSON, ORDERS, SEEDS, keeps_the_laws, leaves_others_alone, refuses, told


@pytest.mark.parametrize(
    ("kind", "true", "wrong"),
    [
        ("fahrenheit", 20, 68), ("fahrenheit", 20.5, 68.9), ("thousand", 2, 2000), ("thousandth", 250, 0.25),
        ("sixty", 1.5, 90.0), ("hundred", 19.99, 1999.0), ("fahrenheit", 0, 32), ("hundred", "12.5", "1250.0"),
        ("hundred", "It is 20 degrees at 10:30.", "It is 2000 degrees at 10:30."),
    ],
)  # fmt: skip
def test_each_unit(kind: Any, true: Any, wrong: Any) -> None:
    assert told(UnitError(kind=kind), true) == wrong
    assert told(UnitError(kind=kind), {"value": true}) == {"value": wrong}


def test_a_quantity_is_wrong_in_all_records_and_the_others_are_true() -> None:
    got = told(UnitError(kind="hundred", point=0.99), {"orders": ORDERS["orders"]})["orders"]
    assert [each["amount"] for each in got] == [1000.0, 2000.0, 3000.0]
    for one, true in zip(got, ORDERS["orders"], strict=True):
        assert {**one, "amount": 0} == {**true, "amount": 0}


def test_any_other_factor_can_be_given() -> None:
    assert told(UnitError(factor=2.54), {"inches": 10}) == {"inches": 25.4}


def test_what_is_no_quantity_passes() -> None:
    for value in ({"at": 1_780_304_400, "id": "ord_7", "day": "2026-06-01"}, {"city": "Oslo"}, "All is well."):
        assert told(UnitError(kind="hundred"), value) == value
    assert told(UnitError(kind="hundred"), {"zero": 0}) == {"zero": 0}


@given(JSON, SEEDS)
def test_any_answer_that_is_changed_is_another_one(value: Any, seed: int) -> None:
    injected = keeps_the_laws(UnitError(kind="fahrenheit").draw(Dice(seed)), value)
    assert injected or not (type(value) is int and not 10**9 <= abs(value) < 10**13 and value != -40)


def test_errors_models_and_replies_without_a_value_pass_untouched() -> None:
    leaves_others_alone(UnitError())


@pytest.mark.parametrize(
    ("params", "line"), [({"factor": -1}, "factor of unit_error is -1: it should be a number from 0 to 1000000000")]
)
def test_bad_parameters_have_one_clear_line(params: dict[str, Any], line: str) -> None:
    refuses("unit_error", params, line)


def test_what_is_not_stated_is_drawn() -> None:
    assert len({UnitError().draw(Dice(seed)) for seed in range(9)}) > 1
