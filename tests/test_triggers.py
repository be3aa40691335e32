"""A trigger is a condition on an occasion, several are combined with "and", and none depends on another injection."""

import json
import pickle
import warnings
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import chaoslab as lab
from chaoslab.base.registry import BrokenPlugin
from chaoslab.core import triggers
from chaoslab.core.events import CallFinished, FaultScheduled, FaultWitnessed
from chaoslab.core.exchange import Call
from chaoslab.core.inject import check_injections
from chaoslab.core.memory import TrialMemory
from chaoslab.core.occasion import HitsSoFar, Occasion
from chaoslab.core.plan import HITS, Choice, Injection, Plan
from tests.measure_parts import by_injection

Step = tuple[str, int, int, float, Any]
"""An attempt: the target, the request, the attempt, the time, the arguments."""


def hits(plan: Plan, steps: Iterable[Step], *, turns: dict[int, int] | None = None) -> dict[str, list[int]]:
    """The places in `steps` that each injection hits. `turns`: the place at which a turn begins → its number."""
    memory, found = TrialMemory(plan, "p1.r1"), {injection.name: list[int]() for injection in plan.injections}
    made: dict[str, int] = {}
    for place, (target, request, attempt, now, arguments) in enumerate(steps):
        if turns and place in turns:
            memory.begin_turn(turns[place], made)
        made[target] = max(made.get(target, 0), request)
        there = plan.find_candidates(target)
        occasion = memory.build_occasion(target, target, request, attempt, elapsed_s=now, arguments=arguments)
        for injection, hit in zip(there, memory.decide_hits(there, occasion), strict=True):
            if hit in HITS:
                found[injection.name].append(place)
    return found


def one(**given: Any) -> Injection:
    return lab.inject("latency", "shop", name="it", **given)


TEN: list[Step] = [("shop", n // 2 + 1, n % 2 + 1, n * 1.0, {"amount": n * 10}) for n in range(10)]
"""Five requests with two attempts each, one a second."""


@pytest.mark.parametrize(
    ("given", "places"),
    [
        ({}, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
        ({"calls": [2, 4]}, [2, 6]),
        ({"calls": [2, 4], "attempts": [2]}, [3, 7]),
        ({"calls": [2], "attempts": [1, 2]}, [2, 3]),
        ({"attempts": [2]}, [1, 3, 5, 7, 9]),
        ({"every": 2}, [2, 6]),
        ({"every": 2, "attempts": [1, 2]}, [2, 3, 6, 7]),
        ({"after_calls": 3}, [6, 7, 8, 9]),
        ({"after_calls": 3, "attempts": [1]}, [6, 8]),
        ({"calls": [1, 3], "after_calls": 2}, [4]),
        ({"calls": [1, 2], "every": 2}, [2]),
        ({"max_times": 3}, [0, 1, 2]),
        ({"max_times": 2, "every": 2}, [2, 6]),
        ({"window_s": [3, 6]}, [3, 4, 5]),
        ({"window_s": [3, 6], "attempts": [2]}, [3, 5]),
        ({"persistence": "once"}, [0]),
        ({"persistence": "once", "after_calls": 2}, [4]),
        ({"persistence": "burst 3", "calls": [2]}, [2, 3, 4]),
        ({"persistence": "burst 2", "every": 2}, [2, 3, 6, 7]),
        ({"persistence": "for_s 2.5", "calls": [2]}, [2, 3, 4]),
        ({"persistence": "for_s 3", "calls": [2]}, [2, 3, 4]),
        ({"persistence": "for_good", "calls": [3]}, [4, 5, 6, 7, 8, 9]),
        ({"persistence": "for_good", "calls": [3], "max_times": 2}, [4, 5]),
        ({"persistence": "for_good", "calls": [1], "when": "amount > 60"}, []),
        ({"persistence": "for_good", "after_calls": 1, "when": "amount > 60"}, [7, 8, 9]),
        ({"when": "amount >= 20 and amount < 40"}, [2, 3]),
        ({"when": "amount > 20", "max_times": 2}, [3, 4]),
        ({"tool": "sh*", "when": "amount > 70", "after_calls": 3}, [8, 9]),
        ({"persistence": "for_good", "when": "amount <= 20"}, [0, 1, 2]),
        ({"tool": "sh*"}, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
        ({"tool": "get_*"}, []),
        ({"chance": 0.0}, []),
        ({"on_turn": 1, "attempts": [1], "after_calls": 3}, [6, 8]),
    ],
)
def test_each_trigger_and_what_it_means_with_others(given: dict[str, Any], places: list[int]) -> None:
    assert hits(Plan(1, (one(**given),)), TEN)["it"] == places


def test_a_chance_is_rolled_only_for_attempts_that_the_others_let_through() -> None:
    """The dice are named, so the hits of chance and number together are those that both have alone."""
    steps = [("shop", n, 1, 0.0, None) for n in range(1, 400)]
    alone, both = (hits(Plan(5, (one(chance=0.3, **given),)), steps)["it"] for given in ({}, {"every": 3}))
    assert both == [place for place in alone if (place + 1) % 3 == 0]
    assert 20 < len(both) < 60


TURNS = {0: 1, 4: 2, 8: 3}


@pytest.mark.parametrize(
    ("given", "places"),
    [
        ({"on_turn": 2}, [4, 5, 6, 7]),
        ({"on_turn": [1, 3], "attempts": [1]}, [0, 2, 8]),
        ({"between_turns": True}, [4, 5, 8, 9]),
        ({"between_turns": True, "attempts": [1]}, [4, 8]),
        ({"between_turns": True, "on_turn": [3]}, [8, 9]),
    ],
)
def test_turns(given: dict[str, Any], places: list[int]) -> None:
    assert hits(Plan(1, (one(**given),)), TEN, turns=TURNS)["it"] == places


def test_a_cascade_begins_at_the_attempt_after_its_cause() -> None:
    cause = lab.inject("latency", "shop", name="cause", calls=[2, 3, 4])
    effect = lab.inject("refused", "bank", name="effect", after="cause")
    third = lab.inject("refused", "bank", name="third", after=["cause", 3])
    steps: list[Step] = [(target, n, 1, 0.0, None) for n in range(1, 6) for target in ("bank", "shop")]
    for order in ((cause, effect, third), (third, effect, cause)):
        found = hits(Plan(1, order), steps)
        assert (found["cause"], found["effect"], found["third"]) == ([3, 5, 7], [4, 6, 8], [8])
    same = lab.inject("refused", "shop", name="same", after="cause")
    assert hits(Plan(1, (cause, same)), steps)["same"] == [5, 7, 9]


# --- taking one out moves no other ---

TARGETS = ("shop", "bank")
conditions = st.sampled_from(["amount > 3", "amount < 8 and not city == 'Rome'", "city in ['Rome', 'Oslo']"])
pieces = {
    "attempts": st.lists(st.integers(1, 3), min_size=1, max_size=2),
    "every": st.integers(1, 3),
    "after_calls": st.integers(1, 3),
    "max_times": st.integers(2, 4),
    "on_turn": st.lists(st.integers(1, 3), min_size=1, max_size=2),
    "window_s": st.tuples(st.floats(0, 3), st.floats(4, 20)).map(list),
    "persistence": st.sampled_from(["once", "burst 2", "for_s 2.5", "for_good"]),
    "tool": st.sampled_from(["s*", "bank", "*"]),
    "when": conditions,
    "between_turns": st.just(True),
}


@st.composite
def injections(draw: st.DrawFn, name: str) -> Injection:
    chosen = draw(st.lists(st.sampled_from(sorted(pieces)), max_size=3, unique=True))
    given = {key: triggers.parse_trigger(key, draw(pieces[key])).value_as_json for key in chosen}
    if given.get("persistence") == "once":
        given.pop("max_times", None)
    if "between_turns" in given and given.get("on_turn") == [1]:
        given.pop("on_turn")
    fault = draw(st.sampled_from(["latency", "timeout", "refused", "tool_error", "wrong_value", "lost_reply"]))
    targets = tuple(draw(st.lists(st.sampled_from([*TARGETS, "*", "b*"]), min_size=1, max_size=2, unique=True)))
    chance = draw(st.sampled_from([0.3, 0.7, 1.0]))
    return Injection(name, (Choice(fault),), targets, chance, triggers=given)


steps_of = st.lists(
    st.tuples(
        st.sampled_from(TARGETS), st.integers(1, 4), st.integers(1, 3), st.floats(0, 2),
        st.fixed_dictionaries({"amount": st.integers(0, 10), "city": st.sampled_from(["Rome", "Bern"])}),
    ),
    min_size=1,
    max_size=25,
)  # fmt: skip


@st.composite
def situations(draw: st.DrawFn) -> tuple[Plan, list[Step], dict[int, int]]:
    plan = Plan(draw(st.integers(0, 999)), tuple(draw(injections(f"i{n}")) for n in range(draw(st.integers(1, 5)))))
    plan.check()
    now, steps = 0.0, list[Step]()
    for target, request, attempt, passed, arguments in draw(steps_of):
        now += passed
        steps.append((target, request, attempt, now, arguments))
    begins = sorted(draw(st.sets(st.integers(1, len(steps)), max_size=2)))
    return plan, steps, {place: turn for turn, place in enumerate(begins, 2)}


@given(situations(), st.data())
def test_taking_an_injection_out_moves_no_other_whatever_its_triggers_remember(
    situation: tuple[Plan, list[Step], dict[int, int]], data: st.DataObject
) -> None:
    plan, steps, turns = situation
    before = hits(plan, steps, turns=turns)
    gone = data.draw(st.sampled_from(plan.injections))
    shuffled = tuple(data.draw(st.permutations(tuple(i for i in plan.injections if i is not gone))))
    del before[gone.name]
    assert hits(Plan(plan.seed, shuffled), steps, turns=turns) == before


@given(situations())
def test_the_manager_decides_as_the_seam_counts(situation: tuple[Plan, list[Step], dict[int, int]]) -> None:
    """The manager is sent each occasion as text and remembers nothing."""
    plan, steps, turns = situation
    memory = TrialMemory(plan, "p1.r1")
    made: dict[str, int] = {}
    for place, (target, request, attempt, now, arguments) in enumerate(steps):
        if place in turns:
            memory.begin_turn(turns[place], made)
        made[target] = max(made.get(target, 0), request)
        wire = plan.find_candidates(target, wire=True)
        occasion = memory.build_occasion(target, target, request, attempt, elapsed_s=now, arguments=arguments)
        row = json.loads(json.dumps(occasion.to_json(wire.hit_dependencies, reads=wire.needs_arguments)))
        found = {name: replace(occasion.get_hits(name)) for name in wire.hit_dependencies}
        counted = [i.name for i, hit in zip(wire, memory.decide_hits(wire, occasion), strict=True) if hit in HITS]
        call = Call(target, target, "p1.r1", request, attempt)
        there = Occasion.from_json(plan.seed, call, row)
        assert {name: there.get_hits(name) for name in wire.hit_dependencies} == {
            name: found[name] for name in wire.hit_dependencies
        }
        assert [i.name for i in wire if i.decide(there, there.get_hits(i.name)) in HITS] == counted
        met, asked = plan.find_wire_hits(call, there)
        assert {active.injection for active in met} <= set(counted)
        assert set(asked) <= {i.name for i in wire}


@pytest.mark.parametrize(
    ("given", "timed", "reads", "state"),
    [
        ({}, False, False, []), ({"calls": [1]}, False, False, []), ({"chance": 0.5}, False, False, []),
        ({"when": "amount > 3"}, False, True, []), ({"window_s": [1, 2]}, True, False, []),
        ({"max_times": 1}, False, False, ["it"]), ({"persistence": "for_s 2"}, True, False, ["it"]),
        ({"after": "other"}, False, False, ["it", "other"]), ({"attempts": [2]}, False, False, []),
    ],
)  # fmt: skip
def test_candidates_know_what_their_triggers_read(
    given: dict[str, Any], timed: bool, reads: bool, state: list[str]
) -> None:
    found = Plan(1, (IT, one(**given))).find_candidates("shop")
    assert (found.needs_time, found.needs_arguments, found.hit_dependencies) == (timed, reads, state)


def test_an_occasion_goes_to_another_process_with_what_its_triggers_read() -> None:
    call = Call("shop", "buy", "p1.r1", 3, 2)
    hits = {name: HitsSoFar(name, 2, 1.5, 1, ("shop", 1, 1)) for name in ("it", "other")}
    occasion = Occasion(7, "p1.r1", "shop", "buy", 3, 2, 2, 1, 2.5, {"amount": 4}, hits, {"x-t": "a"}, 1)
    reach = Plan(7, (one(when="amount > 3", max_times=9),)).find_candidates("shop")
    told = json.loads(json.dumps(occasion.to_json(reach.hit_dependencies, reads=reach.needs_arguments)))
    assert Occasion.from_json(7, call, told) == replace(occasion, met={"it": hits["it"]})
    calm = replace(occasion, headers=None, under_way=0, met={})
    reach = Plan(7, (one(calls=[1]),)).find_candidates("shop")
    assert calm.to_json(reach.hit_dependencies, reads=reach.needs_arguments) == {
        "turn": 2, "in_turn": 1, "elapsed_s": 2.5, "arguments": None, "met": {}
    }  # fmt: skip
    assert Occasion.from_json(7, call, {}) == Occasion(7, "p1.r1", "shop", "buy", 3, 2, 1, 3)


def test_injections_that_are_switched_off_keep_their_places() -> None:
    plan = Plan(1, (IT, one()))
    assert plan.with_injections_off(()) is plan
    assert [each.may_hit for each in plan.with_injections_off(["it"]).injections] == [False, False]
    assert [each.name for each in plan.with_injections_off(["other"]).find_candidates("shop")] == ["it", "it"]


def test_nothing_of_a_trial_is_known_in_the_next() -> None:
    plan = Plan(1, (one(persistence="for_good", calls=[2], attempts=[1]),))
    assert [hits(plan, TEN)["it"] for _ in range(2)] == [[2, 3, 4, 5, 6, 7, 8, 9]] * 2


def test_a_plan_with_triggers_is_the_same_from_its_json() -> None:
    plan = Plan(
        3,
        (
            one(max_times=2, when="amount > 3", window_s=[1, 9], persistence="burst 2", on_turn=[1, 2]),
            lab.inject("refused", "b*", name="then", after=["it", 2], tool="b*", chance=0.5),
        ),
    )
    again = Plan.from_json(json.loads(json.dumps(plan.to_json())))
    assert again.to_json() == plan.to_json()
    assert plan.injections[1].triggers["after"] == ["it", 2]
    assert lab.inject("refused", "bank", after=["it", 1]).triggers == lab.inject("refused", "bank", after="it").triggers
    assert hits(again, TEN) == hits(plan, TEN)


def test_a_plan_goes_to_another_process_after_it_was_used() -> None:
    plan = Plan(1, (one(when="amount > 30", tool="s*", max_times=3), lab.inject("refused", "*", name="all", every=2)))
    before = hits(plan, TEN)
    assert hits(pickle.loads(pickle.dumps(plan)), TEN) == before


def test_a_plan_of_an_older_log_has_no_triggers() -> None:
    old = {"seed": 1, "injections": [
        {"name": "a", "choices": [{"fault": "latency"}], "targets": ["shop"], "chance": 0.5, "calls": []}
    ]}  # fmt: skip
    assert Plan.from_json(old).injections[0].triggers == {}


# --- wrong input ---


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"when": "amount >> 100"},
         "when of latency on shop is 'amount >> 100': column 9 has '>', where a value should stand"),
        ({"when": 5}, "when of latency on shop is 5: it should be a condition on the arguments, as in 'amount > 100'"),
        ({"calls": [1, 1.5]}, "calls of latency on shop is [1, 1.5]: it should be requests' numbers, as in [1, 3]"),
        ({"chance": 0, "calls": [1]},
         "'it' can never hit: chance is 0, so calls can never hit: leave chance out, or raise it"),
        ({"chance": 2}, "chance of latency on shop is 2: it should be a number from 0 to 1"),
        ({"chance": True}, "chance of latency on shop is True: it should be a number from 0 to 1"),
        ({"calls": []}, "calls of latency on shop is []: it should be requests' numbers, as in [1, 3]"),
        (
            {"calls": [0]},
            "calls of latency on shop is [0]: it should be requests' numbers, as in [1, 3]: the first is 1",
        ),
        ({"attempts": 2}, "attempts of latency on shop is 2: it should be attempts' numbers, as in [1, 2]"),
        ({"every": 0},
         "every of latency on shop is 0: it should be a whole number, 1 or more, as in 3 for the 3rd, 6th, 9th "
         "request"),
        ({"after_calls": True},
         "after_calls of latency on shop is True: it should be a whole number, 1 or more: the requests that are "
         "spared"),
        ({"calls": [1, 2], "after_calls": 2},
         "'it' can never hit: calls are [1, 2] and after_calls=2 leaves all of them out"),
        ({"calls": [1, 5], "every": 2}, "'it' can never hit: calls are [1, 5] and every=2 leaves all of them out"),
        ({"max_times": 0}, "max_times of latency on shop is 0: it should be a whole number, 1 or more"),
        ({"window_s": [3, 1]},
         "window_s of latency on shop is [3, 1]: it should be two moments in seconds since the trial began, the first "
         "before the second, as in [5, 20]"),
        ({"window_s": [0, float("nan")]},
         "window_s of latency on shop is [0, nan]: it should be two moments in seconds since the trial began, the "
         "first before the second, as in [5, 20]"),
        ({"persistence": "twice"},
         "persistence of latency on shop is 'twice': it should be 'once', 'burst 3', 'for_s 2.5' or 'for_good'"),
        ({"persistence": "for_s 0"},
         "persistence of latency on shop is 'for_s 0': it should be 'once', 'burst 3', 'for_s 2.5' or 'for_good'"),
        ({"persistence": "burst 3", "max_times": 2},
         "'it' can never hit: persistence is 'burst 3', and max_times=2 ends it before"),
        ({"persistence": "once", "max_times": 2}, "'it' can never hit: persistence is 'once', and max_times is 2"),
        ({"tool": 5}, "tool of latency on shop is 5: it should be a tool's name, or a pattern such as 'get_*'"),
        ({"tool": "x" * 201},
         f"tool of latency on shop is '{'x' * 58}…: it should be a tool's name, or a pattern such as 'get_*'"),
        ({"window_s": [1, 2, 3]},
         "window_s of latency on shop is [1, 2, 3]: it should be two moments in seconds since the trial began, the "
         "first before the second, as in [5, 20]"),
        ({"window_s": [0, "9"]},
         "window_s of latency on shop is [0, '9']: it should be two moments in seconds since the trial began, the "
         "first before the second, as in [5, 20]"),
        ({"window_s": [False, 9]},
         "window_s of latency on shop is [False, 9]: it should be two moments in seconds since the trial began, the "
         "first before the second, as in [5, 20]"),
        ({"tool": ""}, "tool of latency on shop is '': it should be a tool's name, or a pattern such as 'get_*'"),
        ({"after": ["x", 0]},
         "after of latency on shop is ['x', 0]: it should be another injection's name, or its name and a number of "
         "hits, as in ['latency on search', 3]"),
        ({"after": 5},
         "after of latency on shop is 5: it should be another injection's name, or its name and a number of hits, as "
         "in ['latency on search', 3]"),
        ({"between_turns": False}, "between_turns of latency on shop is False: it should be True"),
        ({"on_turn": [1], "between_turns": True},
         "'it' can never hit: on_turn is [1], and between_turns holds from turn 2 on"),
        ({"on_turn": 0}, "on_turn of latency on shop is 0: it should be turns' numbers, as in [2]: the first is 1"),
    ],
)  # fmt: skip
def test_a_trigger_that_is_wrong_or_can_never_hold_is_refused_in_one_line(given: dict[str, Any], line: str) -> None:
    with pytest.raises((ValueError, LookupError)) as refused:
        one(**given)
    assert str(refused.value) == line


@pytest.mark.parametrize(
    "given",
    [
        {"persistence": "once", "max_times": 1}, {"persistence": "burst 2", "max_times": 2}, {"between_turns": True},
        {"on_turn": [2], "between_turns": True}, {"on_turn": 2}, {"calls": [3], "after_calls": 2},
        {"calls": [1, 4], "every": 2},
    ],
)  # fmt: skip
def test_triggers_that_can_hold_together_are_taken(given: dict[str, Any]) -> None:
    Plan(1, (one(**given),)).check(turns=2)


IT = lab.inject("latency", "shop", name="it")


@pytest.mark.parametrize(
    ("faults", "line"),
    [
        ([lab.inject("latency", "sop")],
         "'latency on sop' has no function or service 'sop' to hit: did you mean 'shop'?"),
        ([lab.inject("latency", "x*")], "'latency on x*' has no function or service 'x*' to hit: known are bank, shop"),
        ([one(on_turn=2)], "'it' can never hit: on_turn is [2], and the conversation has 1 turn"),
        ([one(between_turns=True)],
         "'it' can never hit: between_turns needs two turns, and the conversation has 1 turn"),
        ([replace(IT, triggers={"on_turn": [1], "between_turns": True})],
         "'it' can never hit: on_turn is [1], and between_turns holds from turn 2 on"),
        ([one(on_turn=[1]), IT], "two injections are called 'it': give one of them another name="),
        ([IT, lab.inject("refused", "bank", name="b", after="its")],
         "'b' is after 'its', which is no injection: did you mean 'it'?"),
        ([one(after="it")], "'it' can never hit: it is after 'it', which waits for 'it' itself"),
        ([one(after="b"), lab.inject("refused", "bank", name="b", after="it")],
         "'it' can never hit: it is after 'b', which waits for 'it' itself"),
        ([one(chance=0), lab.inject("refused", "bank", name="b", after="it")],
         "'b' can never hit: it is after 'it', whose chance is 0"),
        ([lab.inject("budget", "shop", name="money", tokens=5), lab.inject("refused", "bank", name="b", after="money")],
         "'b' is after 'money', whose fault decides itself if it acts: name another one"),
        ([Injection("mixed", (Choice("latency"), Choice("tool_error")), ("shop",))],
         "'mixed' chooses between faults of several layers: latency (wire), tool_error (tool); make one of each layer"),
        ([replace(IT, triggers={"evry": 2})], "no trigger is called 'evry': did you mean 'every'?"),
    ],
)  # fmt: skip
def test_a_plan_that_cannot_be_as_meant_is_refused_before_anything_starts(faults: list[Injection], line: str) -> None:
    with pytest.raises((ValueError, LookupError)) as refused:
        check_injections(faults, TARGETS)
    assert refused.value.args[0] == line


# --- through real trials ---


def refund(order: int, amount: float) -> str:
    return f"refunded {amount} for {order}"


def lookup(order: int) -> dict[str, int]:
    return {"order": order, "amount": order * 10}


def shop(_: str) -> str:
    """Refunds three orders, and tries each call three times."""
    said = []
    for order in (5, 15, 25):
        for _try in range(3):
            try:
                said.append(refund(order, lookup(order)["amount"]))
                break
            except (OSError, lab.ToolError) as error:
                said.append(type(error).__name__)
    return ", ".join(said)


def met(*faults: Injection) -> list[tuple[str, int, int, str]]:
    """The faults that are witnessed in a trial of the shop: the target, its request, the attempt, the fault."""
    trial = lab.run(shop, "go", tools=[refund], reads=[lookup], faults=faults, effects=[])
    return [(e.target, e.request, e.attempt, e.fault) for _, e in trial.history.find_events(FaultWitnessed)]


def test_a_condition_on_arguments_chooses_the_calls() -> None:
    assert met(lab.inject("tool_error", "refund", when="amount > 100 and order != 25", max_times=2)) == [
        ("refund", 2, 1, "tool_error"), ("refund", 2, 2, "tool_error")
    ]  # fmt: skip


def test_an_outage_lasts_for_its_time() -> None:
    """A refused call takes no time, a late one half a second: the outage is over when the clock says so."""
    late = lab.inject("latency", "lookup", delay_s=0.5)
    down = lab.inject("refused", "refund", calls=[2], persistence="for_s 0.4")
    assert [each for each in met(late, down) if each[3] == "refused"] == [("refund", 2, 1, "refused")]
    longer = lab.inject("refused", "refund", calls=[2], persistence="for_s 0.6")
    assert [each[:3] for each in met(late, longer) if each[3] == "refused"] == [("refund", 2, 1), ("refund", 2, 2)]


def test_a_fault_that_lasts_stays_the_same() -> None:
    """A direction that is drawn anew for each call would be many faults, not one that lasts."""
    lasting = lab.inject("latency", "lookup", jitter_s=0.4, persistence="for_good")
    single = lab.inject("latency", "lookup", jitter_s=0.4)
    drawn = []
    for fault in (lasting, single):
        trial = lab.run(shop, "go", tools=[refund], reads=[lookup], faults=[fault], effects=[], seed=4)
        drawn.append([tuple(e.params.values()) for _, e in trial.history.find_events(FaultScheduled)])
    assert len(drawn[0]) == len(drawn[1]) == 3
    assert len(set(drawn[0])) == 1
    assert len(set(drawn[1])) == 3
    assert drawn[0][0] == drawn[1][0]


def test_one_failure_brings_the_next() -> None:
    cause = lab.inject("tool_error", "lookup", calls=[2])
    effect = lab.inject("refused", "refund", name="effect", after=cause.name, persistence="once")
    assert met(effect, cause) == [("lookup", 2, 1, "tool_error"), ("refund", 2, 1, "refused")]


def test_two_faults_of_the_wire_meet_one_call_of_a_function_too() -> None:
    there = lab.inject("latency", "refund", name="there", delay_s=0.2, stream="upstream", calls=[1])
    back = lab.inject("latency", "refund", name="back", delay_s=0.3, stream="downstream", calls=[1])
    trial = lab.run(shop, "go", tools=[refund], reads=[lookup], faults=[there, back], effects=[])
    assert [e.injection for _, e in trial.history.find_events(FaultWitnessed)] == ["there", "back"]
    assert trial.seconds == 0.5
    assert next(e.rolled for _, e in trial.history.find_events(CallFinished) if e.target == "refund") == [
        "there",
        "back",
    ]
    assert met(there, lab.inject("refused", "refund", calls=[1])) == [("refund", 1, 1, "refused")]


def test_a_pattern_covers_every_function_that_it_matches() -> None:
    assert met(lab.inject("tool_error", "*o*", calls=[1], when="order < 10")) == [("lookup", 1, 1, "tool_error")]
    assert met(lab.inject("tool_error", "*", every=3)) == [
        ("lookup", 3, 1, "tool_error"), ("refund", 3, 1, "tool_error")
    ]  # fmt: skip


def test_all_injections_decide_before_a_hit_counts() -> None:
    injections = [
        lab.inject("latency", "refund", name="third", every=3),
        lab.inject("latency", "refund", name="big", when="amount > 3"),
        lab.inject("latency", "refund", name="twice", calls=[2, 4, 5], max_times=2),
    ]
    plan = Plan(1, tuple(check_injections(injections, ["refund"], functions=["refund"])))
    memory, reach = TrialMemory(plan, "p1.r1"), plan.find_candidates("refund")
    hits = []
    for request, amount in enumerate([1, 9, 1, 1, 1, 9, 1, 1], 1):
        found = memory.decide_hits(
            reach, memory.build_occasion("refund", "refund", request, 1, arguments={"amount": amount})
        )
        hits.append([i.name for i, each in zip(reach, found, strict=True) if each in HITS])
    assert hits == [[], ["big", "twice"], ["third"], ["twice"], [], ["third", "big"], [], []]


class _Unwritten:
    def __repr__(self) -> str:
        raise RuntimeError("no words for it")


@pytest.mark.parametrize("given", [
    {"target": "shop\n"}, {"target": _Unwritten()}, {"target": ["shop", _Unwritten()]}, {"fault": "late\nncy"},
    {"fault": _Unwritten()}, {"name": "a\nb"}, {"name": 10**400}, {"delay_s": _Unwritten()}, {"calls": _Unwritten()},
    {"when": _Unwritten()}, {"after": "its\n"},
])  # fmt: skip
def test_a_value_that_cannot_be_written_in_a_line_is_refused_in_one(given: dict[str, Any]) -> None:
    with pytest.raises((LookupError, TypeError, ValueError)) as refused:
        check_injections([lab.inject(**{"fault": "latency", "target": "shop", **given})], ["shop"])
    said = refused.value.args[0]
    assert said.isprintable()
    assert len(said) < 2000


@pytest.mark.parametrize(
    ("triggers", "eligible"),
    [({"calls": [9], "attempts": [2]}, 0), ({"calls": [2]}, 1), ({"after_calls": 2}, 1), ({"chance": 0.001}, 3)],
)
def test_an_attempt_that_a_number_excludes_was_not_eligible(triggers: dict[str, Any], eligible: int) -> None:
    def look_up(number: int) -> int:
        return number

    def agent(_: str) -> int:
        return sum(map(look_up, range(3)))

    fault = lab.inject("latency", "look_up", **triggers)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lab.NothingHit)
        trial = lab.run(agent, "x", reads=[look_up], faults=[fault])
    assert sum(count.eligible for count in by_injection(trial.history)) == eligible


def test_a_trigger_of_another_package_with_the_old_name_of_from_value_is_refused_in_a_line() -> None:
    class Old(triggers.Trigger):
        @classmethod
        def of(cls, value: Any) -> "Old":
            return cls(value)

    with pytest.raises(BrokenPlugin, match=r"trigger Old .*: its method `of` is called from_value now$"):
        Old.from_value(3)
