"""The answer is well-formed, and there is nothing in it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from chaoslab.base.dice import Dice
from chaoslab.faults.meaning.empty import Empty
from tests.faults.meaning_parts import (
    JSON,
    ORDERS,
    SEEDS,
    Order,
    keeps_the_laws,
    leaves_others_alone,
    refuses,
    returned,
    told,
)


@pytest.mark.parametrize(
    ("true", "empty"), [([1, 2], []), ({"a": 1}, {}), ("words", ""), (7, None), (True, None), ('[{"a": 1}]', "[]")]
)
def test_it_is_of_the_same_sort(true: Any, empty: Any) -> None:
    assert told(Empty(), true) == empty


def test_a_functions_result_is_empty_in_its_own_type() -> None:
    assert returned(Empty(), (1, 2)) == ()
    assert returned(Empty(), Order("ord_1", 3.0)) is None


def test_the_lists_alone_can_be_empty_and_their_count_is_0() -> None:
    assert told(Empty(how="lists"), ORDERS) == {**ORDERS, "orders": [], "count": 0}
    assert told(Empty(how="lists"), [[1], [2]]) == []
    assert told(Empty(how="lists"), {"a": 1}) == {}


@pytest.mark.parametrize("true", [[], {}, ""])
def test_what_is_empty_already_passes(true: Any) -> None:
    assert keeps_the_laws(Empty(), true) is False


@given(JSON, SEEDS)
def test_any_answer_that_is_changed_is_another_one(value: Any, seed: int) -> None:
    injected = keeps_the_laws(Empty().draw(Dice(seed)), value)
    assert injected or not (value not in ([], {}, "", None))


def test_errors_models_and_replies_without_a_value_pass_untouched() -> None:
    leaves_others_alone(Empty())


@pytest.mark.parametrize(
    ("params", "line"), [({"how": "half"}, "how of empty is 'half': it should be 'whole' or 'lists'")]
)
def test_bad_parameters_have_one_clear_line(params: dict[str, Any], line: str) -> None:
    refuses("empty", params, line)
