"""Named dice, proven through real trials: taking an injection out of a plan, or adding one, moves no other's hits."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import chaoslab as lab
from chaoslab.core.events import CallFinished, CallStarted, FaultScheduled
from chaoslab.core.exchange import Call
from chaoslab.core.plan import LAYERS, Choice, Injection, Plan
from tests.plan_parts import roll
from tests.worlds.virtual.patch_parts import in_place

pytestmark = pytest.mark.filterwarnings("ignore::chaoslab.execution.trial.NothingHit")  # plans of any kind
stand_ins = pytest.fixture(scope="module", autouse=True)(in_place)
TARGETS = ("lookup", "refund", "message")
FAULTS = (("latency", "timeout", "reset_peer", "refused"), ("lost_reply", "tool_error"), ("wrong_value",))
"""The faults of each layer; one injection chooses between faults of one layer."""
ASKED, TRIES = 3, 2

injections = st.builds(
    Injection,
    name=st.sampled_from([f"injection {n}" for n in range(6)]),
    choices=st.sampled_from(FAULTS)
    .flatmap(lambda names: st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True))
    .map(lambda names: tuple(Choice(name) for name in names)),
    targets=st.lists(st.sampled_from(TARGETS), min_size=1, unique=True).map(tuple),
    chance=st.sampled_from([0.2, 0.5, 0.9, 1.0]),
    calls=st.lists(st.integers(1, ASKED), max_size=2, unique=True).map(tuple),
)
plans = st.builds(
    Plan, st.integers(0, 2**31), st.lists(injections, min_size=1, max_size=4, unique_by=lambda i: i.name).map(tuple)
)
Place = tuple[str, str, int, int]


def lookup(n: int) -> dict[str, int]:
    return {"n": n}


def refund(n: int) -> dict[str, int]:
    return {"n": n}


def message(n: int) -> dict[str, int]:
    return {"n": n}


def agent(_: str) -> str:
    """Asks each tool three times, and once more whatever came of it: how often it asks depends on no fault."""
    for n in range(ASKED):
        for tool in (lookup, refund, message):
            for _try in range(TRIES):
                try:
                    tool(n)
                except (OSError, lab.ToolError):
                    continue
    return "done"


def trial_of(plan: Plan) -> tuple[dict[Place, str], set[Place]]:
    """The faults that hit, and where each injection's dice were rolled: (injection, target, nth call, of 6)."""
    trial = lab.run(
        agent, "go", tools=[lookup, refund, message], faults=plan.injections, seed=plan.seed, effects=[], timeout_s=5
    )
    history = trial.history
    hit = {(e.injection, e.target, e.request, e.attempt): e.fault for _, e in history.find_events(FaultScheduled)}
    rolled = {(name, e.target, e.request, e.attempt) for _, e in history.find_events(CallFinished) for name in e.rolled}
    return hit, rolled


def drawn(plan: Plan, places: set[Place]) -> dict[Place, str]:
    """The draws of the plan alone at these places."""
    by_name = {injection.name: injection for injection in plan.injections}
    found = {}
    for name, target, request, attempt in places:
        told = roll(plan, by_name[name], Call(target, target, "p1.r1", request, attempt))
        if told is not None:
            found[name, target, request, attempt] = told.fault_name
    return found


@settings(max_examples=40)
@given(plans, injections, st.data())
def test_a_trial_hits_where_the_plan_says_and_an_injection_more_or_less_moves_no_other(
    plan: Plan, another: Injection, data: st.DataObject
) -> None:
    gone = data.draw(st.sampled_from(plan.injections))
    less = replace(plan, injections=tuple(i for i in plan.injections if i is not gone))
    more = replace(plan, injections=(*plan.injections, replace(another, name="another")))
    hit, rolled = trial_of(plan)
    assert hit == drawn(plan, rolled)
    for other in (less, more):
        hit_there, rolled_there = trial_of(other)
        assert hit_there == drawn(other, rolled_there)
        both = rolled & rolled_there  # what an outer fault masks was never eligible
        assert {place: fault for place, fault in hit.items() if place in both} == {
            place: fault for place, fault in hit_there.items() if place in both
        }


@settings(max_examples=40)
@given(plans)
def test_only_an_outer_hit_keeps_dice_from_being_rolled(plan: Plan) -> None:
    """An injection that a call concerns is rolled for it, unless one further out answered in its place."""
    hit, rolled = trial_of(plan)
    live = [i for i in plan.injections if i.chance > 0 or i.calls]
    calls = {place[1:] for place in rolled}
    for target, request, attempt in calls:
        for injection in live:
            if target not in injection.targets or (injection.name, target, request, attempt) in rolled:
                continue
            if injection.calls and (request not in injection.calls or attempt != 1):
                continue  # its numbers exclude the attempt, so no dice would say anything
            outer = [i for i in live if LAYERS.index(i.layer) <= LAYERS.index(injection.layer) and i is not injection]
            assert any((i.name, target, request, attempt) in hit for i in outer)


def test_the_agent_of_these_tests_would_show_a_moved_hit() -> None:
    one = Injection("one", (Choice("refused"),), ("refund",), 0.5)
    renamed = replace(one, name="two")
    plans_ = [Plan(3, (one,)), Plan(3, (renamed,))]
    patterns: list[Any] = [[place[1:] for place in trial_of(plan)[0]] for plan in plans_]
    assert patterns[0] != patterns[1]
    assert patterns[0]
    trial = lab.run(agent, "go", tools=[lookup, refund, message], faults=[one], seed=3, effects=[])
    assert len(list(trial.history.find_events(CallStarted))) == ASKED * TRIES * len(TARGETS)
