"""The answer contradicts itself."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from chaoslab.base.dice import Dice
from chaoslab.faults.meaning.contradiction import Contradiction
from tests.faults.meaning_parts import JSON, ORDERS, SEEDS, WEATHER, keeps_the_laws, leaves_others_alone, refuses, told


def lies(value: Any) -> list[Any]:
    """The different answers that the fault makes of one."""
    found: list[Any] = []
    for n in range(40):
        got = told(Contradiction(severity=0.2, point=n / 40), value)
        if got not in found:
            found.append(got)
    return found


def test_a_count_is_unlike_its_list_or_a_total_unlike_its_sum() -> None:
    found = lies({"count": 3, "total": 60.0, "orders": ORDERS["orders"]})
    assert all(each["orders"] == ORDERS["orders"] for each in found)
    assert {(each["count"] == 3, each["total"] == 60.0) for each in found} == {(False, True), (True, False)}


@pytest.mark.parametrize(
    ("start", "end"),
    [("2026-06-01", "2026-06-04"), ("2026-06-01T10:00:00Z", "2026-06-01T10:30:00Z"), (1_780_304_400, 1_780_308_000)],
)
def test_an_end_is_before_its_start(start: Any, end: Any) -> None:
    (found,) = lies({"name": "Fair", "start": start, "end": end})
    assert (found["name"], found["start"]) == ("Fair", start)
    assert found["end"] < start
    (nested,) = lies({"start": {"at": start}, "end": {"at": end}})
    assert nested["end"]["at"] < start == nested["start"]["at"]


def test_two_equal_values_differ_or_a_flag_is_unlike_the_rest() -> None:
    assert lies({"order": 17, "refund": {"order": 17}})[0]["order"] == 17
    assert lies({"order": 17, "refund": {"order": 17}})[0]["refund"]["order"] != 17
    assert lies({"refunded": "30 EUR", "ok": True}) == [{"refunded": "30 EUR", "ok": False}]


def test_without_a_relation_a_second_value_stands_beside_the_first() -> None:
    got = told(Contradiction(severity=0.2, point=0.3), WEATHER)
    assert {key: got[key] for key in WEATHER} == WEATHER
    (added,) = set(got) - set(WEATHER)
    assert got[added] != WEATHER[added.removesuffix("_confirmed")]
    assert told(Contradiction(severity=0.0), "It is 20 now.") in (
        "It is 20 now. It is 19 now.",
        "It is 20 now. It is 21 now.",
    )


def test_a_number_alone_has_nothing_to_contradict() -> None:
    assert told(Contradiction(), 7) == 7


@given(JSON, SEEDS)
def test_any_answer_that_is_changed_is_another_one(value: Any, seed: int) -> None:
    injected = keeps_the_laws(Contradiction().draw(Dice(seed)), value)
    assert injected or not (isinstance(value, str) and value)


def test_errors_models_and_replies_without_a_value_pass_untouched() -> None:
    leaves_others_alone(Contradiction())


@pytest.mark.parametrize(
    ("params", "line"), [({"severity": 2}, "severity of contradiction is 2: it should be a number from -1 to 1")]
)
def test_bad_parameters_have_one_clear_line(params: dict[str, Any], line: str) -> None:
    refuses("contradiction", params, line)


def test_what_is_not_stated_is_drawn() -> None:
    assert len({Contradiction().draw(Dice(seed)) for seed in range(9)}) > 1
