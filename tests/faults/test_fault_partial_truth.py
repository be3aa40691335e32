"""A part of the answer is true."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from chaoslab.base.dice import Dice
from chaoslab.core import json_values
from chaoslab.faults.meaning.partial_truth import PartialTruth
from tests.faults.meaning_parts import JSON, ORDERS, SEEDS, WEATHER, keeps_the_laws, leaves_others_alone, refuses, told


def test_records_are_missing_or_wrong_and_the_others_true() -> None:
    fewer = told(PartialTruth(share=0.34, point=0.4, how="missing"), ORDERS)
    assert fewer == {**ORDERS, "orders": ORDERS["orders"][1:2]}
    wrong = told(PartialTruth(share=0.67, severity=0.5, point=0.0, how="wrong"), ORDERS)["orders"]
    assert wrong[:2] == ORDERS["orders"][:2]
    assert (list(wrong[2]), wrong[2]["amount"] == 30.0, wrong[2]["id"] == "ord_103") == (list(wrong[0]), False, False)


@pytest.mark.parametrize(("share", "kept"), [(0.0, 1), (0.25, 1), (0.5, 2), (1.0, 3)])
def test_half_of_a_records_fields_are_true(share: float, kept: int) -> None:
    wrong = told(PartialTruth(share=share, severity=0.3, how="wrong"), WEATHER)
    assert (wrong["city"], sum(wrong[key] == WEATHER[key] for key in WEATHER)) == ("Oslo", kept + 1)
    missing = told(PartialTruth(share=share, how="missing"), WEATHER)
    assert (len(missing), missing.items() <= WEATHER.items()) == (kept + 1, True)


@given(JSON, SEEDS)
def test_any_answer_that_is_changed_is_another_one(value: Any, seed: int) -> None:
    injected = keeps_the_laws(PartialTruth().draw(Dice(seed)), value)
    assert injected or not (json_values.leaves(value))


def test_errors_models_and_replies_without_a_value_pass_untouched() -> None:
    leaves_others_alone(PartialTruth())


@pytest.mark.parametrize(
    ("params", "line"),
    [
        ({"severity": 2}, "severity of partial_truth is 2: it should be a number from -1 to 1"),
        ({"share": 1.5}, "share of partial_truth is 1.5: it should be a number from 0 to 1"),
    ],
)
def test_bad_parameters_have_one_clear_line(params: dict[str, Any], line: str) -> None:
    refuses("partial_truth", params, line)


def test_what_is_not_stated_is_drawn() -> None:
    assert len({PartialTruth().draw(Dice(seed)) for seed in range(9)}) > 1
