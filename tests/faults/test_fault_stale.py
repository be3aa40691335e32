"""The answer is an earlier one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

import chaoslab as lab
from chaoslab.base.dice import Dice
from chaoslab.faults.meaning.stale import Stale
from tests.faults.fault_parts import Target, answer, meet
from tests.faults.meaning_parts import JSON, SEEDS, WEATHER, before, keeps_the_laws, leaves_others_alone, refuses, told

OLD = {**WEATHER, "temp": 3.0}
ELSEWHERE = {"city": "Rome", "temp": 31.0}
OSLO, ROME = {"city": "Oslo"}, {"city": "Rome"}


def test_the_work_is_done_and_the_oldest_answer_to_the_same_question_comes_again() -> None:
    target = Target(answer(WEATHER))
    earlier = [before(ELSEWHERE, ROME), before(OLD, OSLO), before({**OLD, "temp": 4.0}, OSLO)]
    met = meet(Stale(), target, earlier=earlier)
    assert met.reply is not None
    assert (met.reply.value, len(target.sent)) == (OLD, 1)
    assert met.evidence == "the changed reply reached the caller"


def test_an_answer_to_other_arguments_comes_if_there_is_none_to_the_same_unless_that_is_asked_for() -> None:
    assert told(Stale(), WEATHER, earlier=[before(ELSEWHERE, ROME)]) == ELSEWHERE
    assert told(Stale(to="same"), WEATHER, earlier=[before(ELSEWHERE, ROME)]) == WEATHER


@pytest.mark.parametrize(
    "other", [before(WEATHER, OSLO), before(OLD, OSLO, status=503), before(OLD, OSLO, tool="forecast")]
)
def test_without_another_earlier_answer_there_is_nothing_to_change(other: Any) -> None:
    for earlier in ([], [other]):
        assert keeps_the_laws(Stale(), WEATHER, earlier=earlier) is False


def test_an_earlier_answer_that_a_fault_had_changed_does_not_come_again() -> None:
    """The first one is wrong, so the third is the second one again."""
    prices = iter([4, 5, 6])

    def price(*, item: str) -> int:  # noqa: ARG001
        return next(prices)

    def agent(_prompt: str) -> str:
        return " ".join(str(price(item="pen")) for _ in range(3))

    wrong = lab.inject("wrong_value", "price", calls=[1], factor=10)
    stale = lab.inject("stale", "price", calls=[3])
    trial = lab.run(agent, "go", reads=[price], faults=[wrong, stale], twin=False)
    assert trial.answer == "40 5 5"


@given(JSON, JSON, SEEDS)
def test_any_earlier_answer_can_come_again(value: Any, old: Any, seed: int) -> None:
    injected = keeps_the_laws(Stale().draw(Dice(seed)), value, earlier=[before(old, OSLO)])
    assert injected == (value is not None and old is not None and repr(value) != repr(old))


def test_errors_models_and_replies_without_a_value_pass_untouched() -> None:
    leaves_others_alone(Stale())


@pytest.mark.parametrize(("params", "line"), [({"to": "all"}, "to of stale is 'all': it should be 'any' or 'same'")])
def test_bad_parameters_have_one_clear_line(params: dict[str, Any], line: str) -> None:
    refuses("stale", params, line)
