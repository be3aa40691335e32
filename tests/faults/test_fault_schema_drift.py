"""The answer has another form and the same values."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from chaoslab.base.dice import Dice
from chaoslab.faults.meaning.schema_drift import SchemaDrift, other_name
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


def test_a_field_has_another_name_in_all_records() -> None:
    got = told(SchemaDrift(kind="renamed", point=0.6), {"orders": ORDERS["orders"]})["orders"]
    (name,) = set(ORDERS["orders"][0]) - set(got[0])
    (new,) = set(got[0]) - set(ORDERS["orders"][0])
    assert [each[new] for each in got] == [each[name] for each in ORDERS["orders"]]
    assert all(name not in each for each in got)


@pytest.mark.parametrize(
    ("name", "other"),
    [("order_id", "orderId"), ("orderId", "order_id"), ("total", "total_value"), ("_links", "_links_value")],
)
def test_a_name_is_spelt_as_another_team_does(name: str, other: str) -> None:
    assert other_name(name) == other
    assert told(SchemaDrift(kind="renamed"), {name: 1}) == {other: 1}
    assert told(SchemaDrift(kind="renamed", point=0.0), {name: 1, other: 2})[f"{other}_v2"] == 1


def test_values_are_nested_retyped_or_wrapped() -> None:
    assert told(SchemaDrift(kind="nested", point=0.2), WEATHER) == {**WEATHER, "temp": {"value": 20.5}}
    assert told(SchemaDrift(kind="retyped", point=0.2), WEATHER) == {**WEATHER, "temp": "20.5"}
    assert told(SchemaDrift(kind="retyped"), {"ok": True}) == {"ok": "true"}
    assert told(SchemaDrift(kind="retyped"), {"city": "Oslo"}) == {"city": ["Oslo"]}
    assert told(SchemaDrift(kind="wrapped"), [1, 2]) == {"items": [1, 2], "count": 2}
    assert told(SchemaDrift(kind="wrapped"), WEATHER) == {"data": WEATHER}


def test_fields_of_a_class_can_only_be_retyped() -> None:
    order = Order("ord_1", 3.0, ())
    assert returned(SchemaDrift(kind="retyped", point=0.9), order) == Order("ord_1", "3.0", ())  # type: ignore[arg-type]
    assert returned(SchemaDrift(kind="renamed"), order) is order


def test_without_a_kind_all_of_them_come() -> None:
    found = {str(told(SchemaDrift(point=n / 100), {"a": [1]})) for n in range(100)}
    wrapped, retyped = "{'a': {'items': [1], 'count': 1}}", "{'a': ['1']}"
    assert found == {"{'a_value': [1]}", "{'a': {'value': [1]}}", retyped, wrapped}


@given(JSON, SEEDS)
def test_any_answer_that_is_changed_is_another_one(value: Any, seed: int) -> None:
    injected = keeps_the_laws(SchemaDrift().draw(Dice(seed)), value)
    assert injected or not (value not in ([], None, ""))


def test_errors_models_and_replies_without_a_value_pass_untouched() -> None:
    leaves_others_alone(SchemaDrift())


@pytest.mark.parametrize(
    ("params", "line"), [({"point": 2}, "point of schema_drift is 2: it should be a number from -1 to 1")]
)
def test_bad_parameters_have_one_clear_line(params: dict[str, Any], line: str) -> None:
    refuses("schema_drift", params, line)


def test_what_is_not_stated_is_drawn() -> None:
    assert len({SchemaDrift().draw(Dice(seed)) for seed in range(9)}) > 1
