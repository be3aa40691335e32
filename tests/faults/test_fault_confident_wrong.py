"""A wrong answer says that it was verified."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from chaoslab.base.dice import Dice
from chaoslab.core import json_values
from chaoslab.faults.meaning.confident_wrong import ConfidentWrong
from tests.faults.meaning_parts import JSON, ORDERS, SEEDS, WEATHER, keeps_the_laws, leaves_others_alone, refuses, told


def test_one_value_is_wrong_and_said_to_be_certain() -> None:
    got = told(ConfidentWrong(severity=0.1, point=0.0), WEATHER)
    assert got == {**WEATHER, "temp": got["temp"], "confidence": 0.99, "verified": True}
    assert 0 < abs(got["temp"] - 20.5) < 1


def test_in_a_list_the_wrong_record_is_the_certain_one() -> None:
    got = told(ConfidentWrong(severity=0.1, point=0.5, confidence=0.8), ORDERS["orders"])
    (certain,) = [n for n, each in enumerate(got) if "verified" in each]
    for n, true in enumerate(ORDERS["orders"]):
        differs = {key for key in true if got[n][key] != true[key]}
        assert len(differs) == (n == certain)
    assert got[certain]["confidence"] == 0.8


def test_a_text_says_it_in_words() -> None:
    got = told(ConfidentWrong(severity=0.0, confidence=0.9), "It is 20 degrees.")
    assert got in [f"It is {wrong} degrees. (verified, 90% certain)" for wrong in (19, 21)]


@given(JSON, SEEDS)
def test_any_answer_that_is_changed_is_another_one(value: Any, seed: int) -> None:
    injected = keeps_the_laws(ConfidentWrong().draw(Dice(seed)), value)
    assert injected or not (json_values.leaves(value))


def test_errors_models_and_replies_without_a_value_pass_untouched() -> None:
    leaves_others_alone(ConfidentWrong())


@pytest.mark.parametrize(
    ("params", "line"),
    [
        ({"severity": 2}, "severity of confident_wrong is 2: it should be a number from -1 to 1"),
        ({"confidence": 99}, "confidence of confident_wrong is 99: it should be a number from 0 to 1"),
    ],
)
def test_bad_parameters_have_one_clear_line(params: dict[str, Any], line: str) -> None:
    refuses("confident_wrong", params, line)


def test_what_is_not_stated_is_drawn() -> None:
    assert len({ConfidentWrong().draw(Dice(seed)) for seed in range(9)}) > 1
