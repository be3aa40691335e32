"""The last page of a list is missing."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from chaoslab.base.dice import Dice
from chaoslab.core import json_values
from chaoslab.faults.meaning.page_lost import PageLost
from tests.faults.meaning_parts import JSON, ORDERS, SEEDS, keeps_the_laws, leaves_others_alone, refuses, told


@pytest.mark.parametrize(("count", "said"), [("kept", 3), ("changed", 2)])
def test_the_last_part_is_missing_and_the_count_tells_of_it_or_not(count: Any, said: int) -> None:
    got = told(PageLost(share=0.7, count=count), ORDERS)
    assert got == {**ORDERS, "orders": ORDERS["orders"][:2], "count": said}


@pytest.mark.parametrize(("share", "left"), [(0.0, 1), (0.5, 2), (0.9, 3), (1.0, 3)])
def test_at_least_one_is_left_and_one_is_lost(share: float, left: int) -> None:
    assert told(PageLost(share=share), [1, 2, 3, 4]) == [1, 2, 3, 4][:left]
    assert told(PageLost(share=share), "a\nb\nc\nd") == "a\nb\nc\nd"[: 2 * left]


def test_one_entry_is_no_list_to_lose_a_page_of() -> None:
    for value in ([1], {"orders": [{"id": 7}]}, "one line", 7):
        assert told(PageLost(), value) == value


def test_both_counts_are_drawn() -> None:
    assert {PageLost().draw(Dice(n)).count for n in range(40)} == {"kept", "changed"}


@given(JSON, SEEDS)
def test_any_answer_that_is_changed_is_another_one(value: Any, seed: int) -> None:
    injected = keeps_the_laws(PageLost().draw(Dice(seed)), value)
    assert injected or not (json_values.lists(value, least=2))


def test_errors_models_and_replies_without_a_value_pass_untouched() -> None:
    leaves_others_alone(PageLost())


@pytest.mark.parametrize(
    ("params", "line"), [({"share": 2}, "share of page_lost is 2: it should be a number from 0 to 1")]
)
def test_bad_parameters_have_one_clear_line(params: dict[str, Any], line: str) -> None:
    refuses("page_lost", params, line)
