"""A list has one record more than there are, or the record is an invented one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from chaoslab.base.dice import Dice
from chaoslab.core import json_values
from chaoslab.faults.meaning.fabricated_data import FabricatedData
from tests.faults.meaning_parts import (
    JSON,
    ORDERS,
    SEEDS,
    WEATHER,
    Order,
    keeps_the_laws,
    leaves_others_alone,
    refuses,
    returned,
    told,
)


def test_a_list_gets_one_record_more_and_its_count_agrees() -> None:
    got = told(FabricatedData(severity=0.5, point=0.99), ORDERS)
    *true, made = got["orders"]
    assert (true, got["count"]) == (ORDERS["orders"], 4)
    assert (list(made), type(made["number"]), made["open"]) == (list(true[0]), int, false_of(true[0]))
    assert all(made[key] != true[0][key] for key in ("id", "number", "amount", "placed", "status"))


def false_of(record: dict[str, Any]) -> Any:
    """Its flag: an invention has the flags of a true record."""
    return record["open"]


def test_a_record_without_a_list_is_another_one_that_answers_the_question() -> None:
    got = told(FabricatedData(severity=0.2), WEATHER)
    assert got["city"] == "Oslo"
    assert all(got[key] != WEATHER[key] for key in ("temp", "humidity", "sky", "at"))
    assert told(FabricatedData(severity=0.2, how="added"), WEATHER) == WEATHER
    replaced = told(FabricatedData(severity=0.2, how="replaced"), ORDERS)
    assert len(replaced["orders"]) == 3
    assert replaced["orders"][0]["amount"] != 10.0


def test_a_functions_own_types_stay() -> None:
    orders = [Order("ord_1", 10.0), Order("ord_2", 20.0)]
    got = returned(FabricatedData(severity=0.5, point=0.0), orders)
    assert [type(each) for each in got] == [Order] * 3
    assert got[1:] == orders
    assert len(orders) == 2


@given(JSON, SEEDS)
def test_any_answer_that_is_changed_is_another_one(value: Any, seed: int) -> None:
    injected = keeps_the_laws(FabricatedData().draw(Dice(seed)), value)
    assert injected or not (json_values.leaves(value) or json_values.lists(value))


def test_errors_models_and_replies_without_a_value_pass_untouched() -> None:
    leaves_others_alone(FabricatedData())


@pytest.mark.parametrize(
    ("params", "line"),
    [
        ({"severity": 2}, "severity of fabricated_data is 2: it should be a number from -1 to 1"),
        ({"how": "changed"}, "how of fabricated_data is 'changed': it should be '' or 'added' or 'replaced'"),
    ],
)
def test_bad_parameters_have_one_clear_line(params: dict[str, Any], line: str) -> None:
    refuses("fabricated_data", params, line)


def test_what_is_not_stated_is_drawn() -> None:
    assert len({FabricatedData().draw(Dice(seed)) for seed in range(9)}) > 1
