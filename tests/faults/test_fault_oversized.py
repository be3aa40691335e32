"""The answer is far too large."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from chaoslab.base.dice import Dice
from chaoslab.core import json_values
from chaoslab.faults.meaning.oversized import Oversized
from tests.faults.meaning_parts import JSON, ORDERS, SEEDS, WEATHER, keeps_the_laws, leaves_others_alone, refuses, told


@pytest.mark.parametrize("value", [ORDERS, WEATHER, "It is 20 now.", [1], {"a": {"b": []}}, ["long text here"], ""])
def test_it_has_the_size_and_little_more(value: Any) -> None:
    got = told(Oversized(bytes=50_000), value)
    assert 50_000 <= json_values.size(got) <= 52_000


def test_the_records_come_again_and_the_count_agrees() -> None:
    got = told(Oversized(bytes=50_000), ORDERS)
    assert got["orders"][:3] == got["orders"][3:6] == ORDERS["orders"]
    assert got["count"] == len(got["orders"]) > 300
    assert {**got, "orders": 0, "count": 0} == {**ORDERS, "orders": 0, "count": 0}
    weather = told(Oversized(bytes=50_000), {"temp": 20, "details": 1})
    assert (weather["temp"], weather["details"], len(weather["details_more"]) > 49_000) == (20, 1, True)


def test_a_large_one_and_a_number_pass() -> None:
    for value in ("x" * 2000, 7):
        assert told(Oversized(bytes=1000), value) == value


@given(JSON, SEEDS)
def test_any_answer_that_is_changed_is_another_one(value: Any, seed: int) -> None:
    injected = keeps_the_laws(Oversized(bytes=5000).draw(Dice(seed)), value)
    assert injected or not (isinstance(value, dict | list) and value and json_values.size(value) < 5000)


def test_errors_models_and_replies_without_a_value_pass_untouched() -> None:
    leaves_others_alone(Oversized())


@pytest.mark.parametrize(
    ("params", "line"), [({"bytes": 10}, "bytes of oversized is 10: it should be a whole number from 1000 to 10000000")]
)
def test_bad_parameters_have_one_clear_line(params: dict[str, Any], line: str) -> None:
    refuses("oversized", params, line)
