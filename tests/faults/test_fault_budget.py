"""The budget is used up: hard refuses each further call, soft writes it down and lets it pass."""

from dataclasses import replace
from typing import Literal

import pytest

from chaoslab.base.dice import Dice
from chaoslab.core import events
from chaoslab.faults.budget.budget import Budget
from tests.faults.fault_parts import CALL, WORDS, Target, meet

PARAMETERS = {"tokens": "tokens", "cost_usd": "cost_usd", "calls": "calls_max", "seconds": "seconds"}
"""The parameter of each limit."""
LIMITS = tuple(PARAMETERS)


@pytest.mark.parametrize("limit", LIMITS)
def test_hard_refuses_the_call_that_finds_the_limit_reached(limit: str) -> None:
    target = Target()
    met = meet(
        Budget(**{PARAMETERS[limit]: 3.0}, mode="hard"), target, call=replace(CALL, errors=WORDS), spent={limit: 3.0}
    )
    assert met.reply is not None
    assert (met.reply.status, met.reply.value, target.sent) == (402, {"broke": True}, [])
    assert target.notes == [events.Budget(limit=limit, spent=3.0, allowed=3.0, mode="hard", target="weather")]
    assert met.injected
    assert met.evidence == "the call was refused for want of budget"


@pytest.mark.parametrize("limit", LIMITS)
def test_soft_only_writes_it_down(limit: str) -> None:
    target = Target()
    met = meet(Budget(**{PARAMETERS[limit]: 3.0}, mode="soft"), target, spent={limit: 3.5})
    assert met.reply == target.reply
    assert target.notes == [events.Budget(limit=limit, spent=3.5, allowed=3.0, mode="soft", target="weather")]
    assert (met.injected, met.evidence) == (False, None)


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("mode", ["hard", "soft"])
def test_below_its_limit_a_call_passes_unnoticed(limit: str, mode: Literal["hard", "soft"]) -> None:
    target = Target()
    met = meet(Budget(**{PARAMETERS[limit]: 3.0}, mode=mode), target, spent=dict.fromkeys(LIMITS, 2.999))
    assert (met.reply, target.notes, met.injected, met.evidence) == (target.reply, [], False, None)


@pytest.mark.parametrize("limit", LIMITS)
def test_a_call_of_which_nothing_is_told_has_spent_nothing(limit: str) -> None:
    target = Target()
    met = meet(Budget(**{PARAMETERS[limit]: 0.001}, mode="hard"), target)
    assert (met.reply, target.notes, met.injected) == (target.reply, [], False)


def test_of_two_limits_that_are_reached_one_is_told() -> None:
    target = Target()
    meet(
        Budget(tokens=10.0, calls_max=3.0, mode="soft"),
        target,
        spent={"tokens": 12.3456789, "calls": 3.0},
    )
    assert target.notes == [events.Budget(limit="tokens", spent=12.345679, allowed=10.0, mode="soft", target="weather")]


def test_no_limit_never_refuses() -> None:
    target = Target()
    assert meet(Budget(), target, spent=dict.fromkeys(LIMITS, 1e9)).reply == target.reply


def test_a_target_without_words_for_it_says_429_and_asks_nobody_to_come_back() -> None:
    met = meet(Budget(calls_max=1), call=replace(CALL, errors={429: WORDS[429]}), spent={"calls": 1.0})
    assert met.reply is not None
    assert (met.reply.status, met.reply.value) == (429, {"busy": True})
    assert met.reply.headers["x-should-retry"] == "false"
    assert "retry-after" not in {name.lower() for name in met.reply.headers}


def test_nothing_is_drawn_and_nothing_is_on_the_wire() -> None:
    assert Budget(calls_max=1).draw(Dice(1)) == Budget(calls_max=1)
    assert Budget(calls_max=1).toxics() == ()
