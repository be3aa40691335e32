"""The answer is about another one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from chaoslab.base.dice import Dice
from chaoslab.core import json_values
from chaoslab.faults.meaning.wrong_entity import WrongEntity
from tests.faults.meaning_parts import JSON, SEEDS, WEATHER, before, keeps_the_laws, leaves_others_alone, refuses, told

ROME = {"city": "Rome", "temp": 31.5, "humidity": 30, "sky": "sunny", "at": "2026-06-01T08:00:00Z"}
EARLIER = [before({**ROME, "temp": 1.0}, {"city": "Rome"}), before(ROME, {"city": "Rome"})]


def test_it_is_the_latest_answer_to_other_arguments_of_the_same_tool() -> None:
    assert told(WrongEntity(severity=0.8), WEATHER, earlier=EARLIER) == ROME
    assert told(WrongEntity(severity=0.2), WEATHER, earlier=EARLIER) == {**ROME, "city": "Oslo"}


@pytest.mark.parametrize(
    "other",
    [
        before(WEATHER, {"city": "Oslo"}), before(ROME, {"city": "Oslo"}), before({}, {"city": "X"}, status=500),
        before(ROME, {"city": "Rome"}, tool="forecast"), before("sunny", {"city": "Rome"}),
    ],
)  # fmt: skip
def test_without_such_a_one_it_is_made(other: Any) -> None:
    near = told(WrongEntity(severity=0.2), WEATHER, earlier=[other])
    assert near["city"] == "Oslo"
    assert all(near[key] != WEATHER[key] for key in ("temp", "humidity", "sky", "at"))
    assert near["sky"] != ROME["sky"] or near["temp"] != ROME["temp"]
    far = told(WrongEntity(severity=0.8), WEATHER, earlier=[other])
    assert far["city"] != "Oslo"


@given(JSON, SEEDS)
def test_any_answer_that_is_changed_is_another_one(value: Any, seed: int) -> None:
    injected = keeps_the_laws(WrongEntity().draw(Dice(seed)), value)
    assert injected or not (json_values.leaves(value))


def test_errors_models_and_replies_without_a_value_pass_untouched() -> None:
    leaves_others_alone(WrongEntity())


@pytest.mark.parametrize(
    ("params", "line"), [({"severity": 2}, "severity of wrong_entity is 2: it should be a number from -1 to 1")]
)
def test_bad_parameters_have_one_clear_line(params: dict[str, Any], line: str) -> None:
    refuses("wrong_entity", params, line)


def test_what_is_not_stated_is_drawn() -> None:
    assert len({WrongEntity().draw(Dice(seed)) for seed in range(9)}) > 1
