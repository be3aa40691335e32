"""An injection hits by names alone: nothing else in the plan, and nothing asked before, moves its hits."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaoslab.analysis.measures.intervals import clopper_pearson_interval
from chaoslab.base.registry import list_plugins
from chaoslab.core.attempt import AttemptFaults
from chaoslab.core.chain import ActiveFault, nest_flows
from chaoslab.core.events import Event
from chaoslab.core.exchange import Call, Failure, Observation, Reply
from chaoslab.core.memory import TrialMemory
from chaoslab.core.occasion import Occasion
from chaoslab.core.plan import LAYERS, Choice, Injection, Plan
from chaoslab.faults.network.latency import Latency
from chaoslab.faults.tool.tool_error import ToolError
from tests.faults.fault_parts import Target, played
from tests.plan_parts import first, roll
from tests.sure import sure

TARGETS = ("search", "weather", "model")
FAULTS = list_plugins("faults")

choices = st.lists(
    st.builds(Choice, st.sampled_from(FAULTS), st.floats(0.1, 10)), min_size=1, max_size=3, unique_by=lambda c: c.fault
)
injections = st.lists(
    st.builds(
        Injection,
        name=st.sampled_from([f"injection {n}" for n in range(8)]),
        choices=choices.map(tuple),
        targets=st.lists(st.sampled_from(TARGETS), min_size=1, unique=True).map(tuple),
        chance=st.floats(0, 1),
        calls=st.lists(st.integers(1, 6), max_size=2, unique=True).map(tuple),
    ),
    max_size=6,
    unique_by=lambda injection: injection.name,
)
plans = st.builds(Plan, st.integers(0, 2**63 - 1), injections.map(tuple))


def call(request: int = 1, attempt: int = 1, *, target: str = "search", trial: str = "p1.r1") -> Call:
    return Call(target, "search_web", trial, request, attempt)


ASKED = [
    call(request, attempt, target=target, trial=trial)
    for target in TARGETS
    for trial in ("p1.r1", "p2.r1")
    for request in range(1, 5)
    for attempt in (1, 2)
]


def key_of(injection: Injection, one: Call) -> tuple[str, str, str, int, int]:
    return (injection.name, one.trial, one.target, one.request, one.attempt)


def drawn(plan: Plan, asked: Sequence[Call] = ASKED) -> dict[tuple[str, str, str, int, int], ActiveFault | None]:
    """The draw of every injection of the plan for each call that it covers, asked in this order."""
    return {key_of(i, one): roll(plan, i, one) for i in plan.injections for one in asked if i.covers(one.target)}


@given(plans, st.data())
def test_taking_an_injection_out_or_adding_one_moves_no_other(plan: Plan, data: st.DataObject) -> None:
    before = drawn(plan)
    for gone in plan.injections:
        rest = replace(plan, injections=tuple(i for i in plan.injections if i is not gone))
        assert drawn(rest) == {key: active for key, active in before.items() if key[0] != gone.name}
    newcomer = Injection("newcomer", (Choice("latency"),), TARGETS, 0.5)
    place = data.draw(st.integers(0, len(plan.injections)))
    more = replace(plan, injections=(*plan.injections[:place], newcomer, *plan.injections[place:]))
    assert {key: active for key, active in drawn(more).items() if key[0] != "newcomer"} == before


@given(plans, st.permutations(ASKED), st.integers(0, 5))
def test_one_attempt_more_moves_no_later_request_whatever_the_order(plan: Plan, order: list[Call], more: int) -> None:
    retried = [call(1, 3 + n) for n in range(more)]
    found = drawn(plan, [*retried, *order])
    assert {key: active for key, active in found.items() if key[-1] <= 2} == drawn(plan)


@given(plans)
def test_a_plan_survives_its_own_json_and_draws_the_same_there(plan: Plan) -> None:
    again = Plan.from_json(json.loads(json.dumps(plan.to_json())))
    assert again == plan
    assert drawn(again) == drawn(plan)


@pytest.mark.parametrize("chance", [0.001, 0.1, 0.3, 0.9])
def test_over_20000_draws_the_rate_of_hits_is_what_was_asked_for(chance: float) -> None:
    injection = Injection("wire", (Choice("latency"),), ("search",), chance)
    plan, draws = Plan(7, (injection,)), 20_000
    hit = sum(roll(plan, injection, call(n)) is not None for n in range(draws))
    assert chance in sure(clopper_pearson_interval(hit, draws, confidence=0.999))


def test_alternatives_come_up_by_their_weight() -> None:
    weights = {"timeout": 1.0, "latency": 3.0, "reset_peer": 6.0, "refused": 0.0}
    injection = Injection("wire", tuple(Choice(name, weight) for name, weight in weights.items()), ("search",))
    plan, draws = Plan(7, (injection,)), 20_000
    fell = [active.fault_name for n in range(draws) if (active := roll(plan, injection, call(n)))]
    assert len(fell) == draws
    for name, weight in weights.items():
        assert weight / 10 in sure(clopper_pearson_interval(fell.count(name), draws, confidence=0.999))


def test_a_rare_hit_is_any_of_the_alternatives() -> None:
    injection = Injection("wire", (Choice("timeout"), Choice("refused")), ("search",), 0.1)
    fell = [active.fault_name for n in range(5000) if (active := roll(Plan(7), injection, call(n)))]
    assert 0.5 in sure(clopper_pearson_interval(fell.count("timeout"), len(fell), confidence=0.999))


def test_which_fault_it_is_does_not_depend_on_the_chance() -> None:
    rare = Injection("wire", (Choice("timeout"), Choice("latency", params={"jitter_s": 0.1})), ("search",), 0.2)
    sure = replace(rare, chance=1.0)
    pairs = [(roll(Plan(1), rare, call(n)), roll(Plan(1), sure, call(n))) for n in range(200)]
    assert all(active == always for active, always in pairs if active is not None)
    assert sum(active is not None for active, _ in pairs) in range(15, 80)


def test_an_injection_of_which_nothing_is_said_hits_every_attempt() -> None:
    injection = Injection("wire", (Choice("latency"),), ("search",))
    assert (injection.chance, injection.calls, injection.choices[0].weight) == (1.0, (), 1.0)
    assert all(roll(Plan(1), injection, call(n, attempt)) for n in range(50) for attempt in (1, 2))


def test_never_and_always() -> None:
    never, always = (Injection("wire", (Choice("latency"),), ("search",), chance) for chance in (0.0, 1.0))
    assert [roll(Plan(1), never, call(n)) for n in range(500)] == [None] * 500
    assert all(roll(Plan(1), always, call(n)) for n in range(500))


def test_explicit_calls_hit_exactly_those_requests_first_attempts() -> None:
    injection = Injection("errors", (Choice("tool_error", params={"status": 503}),), ("search",), calls=(2, 5))
    hit = [(n, attempt) for n in range(1, 7) for attempt in (1, 2) if roll(Plan(1), injection, call(n, attempt))]
    assert hit == [(2, 1), (5, 1)]
    assert roll(Plan(1), injection, call(2)) == ActiveFault("errors", "tool_error", ToolError(503))


def test_seed_trial_target_request_attempt_and_name_each_make_other_dice() -> None:
    base = Injection("wire", (Choice("latency"),), ("search", "weather"), 0.5)

    def pattern(seed: int = 1, injection: Injection = base, **names: str) -> list[bool]:
        return [roll(Plan(seed), injection, call(n, **names)) is not None for n in range(64)]  # type: ignore[arg-type]

    retried = [roll(Plan(1), base, call(n, 2)) is not None for n in range(64)]
    others = [pattern(2), pattern(injection=replace(base, name="other")), pattern(target="weather"), retried]
    others.append(pattern(trial="p1.r2"))
    assert pattern() == pattern()
    assert len({tuple(one) for one in [pattern(), *others]}) == 6


def test_parameters_reach_the_fault_and_its_own_chances_are_drawn() -> None:
    injection = Injection("wire", (Choice("latency", params={"delay_s": 1.0, "jitter_s": 0.5}),), ("search",))
    active = sure(roll(Plan(1, (injection,)), injection, call()))
    assert isinstance(active.fault, Latency)
    assert active.fault.jitter_s == 0
    assert 0.5 <= active.fault.delay_s <= 1.5
    assert active.fault.stream in ("upstream", "downstream")


def test_the_wire_is_told_apart_and_the_rest_is_outermost_first() -> None:
    order = ["wire", "cut", "lost_reply", "wrong_value", "truncate_context", "budget"]
    faults = {"wire": "latency"} | {name: name for name in order[1:]}
    plan = Plan(1, tuple(Injection(name, (Choice(faults[name]),), TARGETS) for name in order))
    assert [i.name for i in plan.find_candidates(TARGETS[0], wire=True)] == ["wire"]
    assert [i.name for i in plan.find_candidates(TARGETS[0], wire=False)] == order[:0:-1]
    assert {i.layer for i in plan.injections} == set(LAYERS)


def test_an_injection_covers_its_targets_only() -> None:
    injection = Injection("wire", (Choice("latency"),), ("search", "model"))
    assert [target for target in TARGETS if injection.covers(target)] == ["search", "model"]


def test_only_what_may_hit_a_call_is_rolled_for_it() -> None:
    """Dice of an injection that cannot hit would slow the agent's calls, and the log tell of dice that mean nothing."""
    rare = Injection("rare", (Choice("latency"),), ("search",), 1e-9)
    numbered = Injection("numbered", (Choice("refused"),), ("search", "model"), calls=(2,))
    never = Injection("never", (Choice("latency"),), ("search",), 0.0)
    error = Injection("error", (Choice("tool_error"),), ("search",))
    plan = Plan(1, (rare, numbered, never, error))
    assert [i.name for i in plan.find_candidates("search", wire=True)] == ["rare", "numbered"]
    assert [i.name for i in plan.find_candidates("model", wire=True)] == ["numbered"]
    assert [i.name for i in plan.find_candidates("search", wire=False)] == ["error"]
    assert plan.find_candidates("weather", wire=True) == ()
    assert plan.find_candidates("search", wire=True) is plan.find_candidates(
        "search", wire=True
    )  # found once: it is asked for with every call


def hits(plan: Plan, one: Call) -> tuple[list[str], list[str]]:
    """The injections of the wire that hit a call, and those that were asked."""
    active, asked = plan.find_wire_hits(one, first(plan, one))
    return [each.injection for each in active], asked


def test_a_call_meets_all_faults_of_the_wire_that_hit_it_in_the_plans_order() -> None:
    second = Injection("second", (Choice("timeout"),), ("search",), calls=(2,))
    third = Injection("third", (Choice("latency"),), ("search",), calls=(2, 3))
    plan = Plan(1, (second, third))
    assert hits(plan, call(2)) == (["second", "third"], ["second", "third"])
    assert hits(plan, call(3)) == (["third"], ["third"])
    assert hits(plan, call(4)) == ([], [])
    assert hits(plan, call(2, target="weather")) == ([], [])


def test_a_refused_connection_leaves_nothing_for_the_other_faults() -> None:
    late = Injection("late", (Choice("latency"),), ("search",), calls=(2, 3))
    closed = Injection("closed", (Choice("refused"),), ("search",), calls=(2,))
    spared = Injection("spared", (Choice("latency"),), ("search",), chance=1e-9)
    plan = Plan(1, (late, closed, spared))
    assert hits(plan, call(2)) == (["closed"], ["closed", "spared"])
    assert hits(plan, call(3)) == (["late"], ["late", "spared"])


def test_the_requests_to_be_hit_by_number_are_known_beforehand() -> None:
    both = Injection("both", (Choice("refused"),), ("search", "model"), calls=(1, 4))
    by_chance = Injection("by chance", (Choice("latency"),), ("search",), 0.5)
    perhaps = Injection("perhaps", (Choice("latency"),), ("search",), 0.5, calls=(2,))
    wide = Injection("wide", (Choice("latency"),), ("s*",), calls=(2,))
    waiting = Injection("waiting", (Choice("latency"),), ("search",), calls=(2,), triggers={"after": "both"})
    named = Plan(1, (both, by_chance, perhaps, wide, waiting)).numbered_requests
    assert named == ((both, "search", 1), (both, "search", 4), (both, "model", 1), (both, "model", 4))


def story_of(
    injections: Sequence[Injection], one: Call, *, fails: str = "", spent: Mapping[str, float] | None = None
) -> tuple[list[str], AttemptFaults]:
    """The kinds noted when an attempt is told all stories of these injections, however it then ends."""
    plan, notes = Plan(1, tuple(injections)), list[Event]()
    memory, candidates = TrialMemory(plan, one.trial), plan.find_candidates(one.target, wire=False)
    decisions = memory.decide_hits(candidates, first(plan, one))
    faults = AttemptFaults(memory, one, notes.append, spent=spent)
    target = Target(fails=fails)
    reply: Reply | None = None
    error: str | None = None
    try:
        reply = played(
            nest_flows(faults.build_fault_getters(candidates, decisions), one, faults.log_injected_fault), target
        )
    except Failure as failure:
        error = failure.kind
    sent = target.sent[-1] if target.sent else None
    faults.log_met_faults(Observation(target.now_s, target.deadline_s, error, 200 if reply else None, 0, sent, reply))
    return [event.kind.removeprefix("fault_") for event in notes], faults


def test_the_stages_of_a_story_are_noted_as_it_goes() -> None:
    stages, faults = story_of([Injection("errors", (Choice("tool_error"),), ("search",))], call())
    assert stages == ["scheduled", "injected", "witnessed"]
    assert faults.rolled == ["errors"]
    assert [active.fault_name for active in faults.active] == ["tool_error"]


def test_all_attempts_in_a_window_meet_the_same_fault() -> None:
    window = Injection("w", (Choice("latency", params={"jitter_s": 5.0}),), ("search",), triggers={"window_s": [0, 60]})
    assert len({Plan(1, (window,)).draw_fault(window, call(n)).fault for n in range(1, 5)}) == 1


def test_a_story_that_decides_by_itself_is_scheduled_when_it_acts() -> None:
    """A budget that is not used up was never a fault.

    A plan's stages would show one scheduled for every call, and none met.
    """
    budget = Injection("budget", (Choice("budget", params={"calls_max": 3.0}),), ("search",))
    assert budget.conditional
    stages, faults = story_of([budget], call(), spent={"calls": 2.0})
    assert (stages, faults.rolled) == ([], ["budget"])
    stages, _ = story_of([budget], call(), spent={"calls": 3.0})
    assert stages == ["scheduled", "injected", "witnessed"]


def test_one_story_that_decides_by_itself_makes_its_injection_conditional() -> None:
    assert Injection("either", (Choice("tool_error"), Choice("budget")), ("search",)).conditional
    assert not Injection("errors", (Choice("tool_error"), Choice("lost_reply")), ("search",)).conditional


def test_what_looks_like_a_fault_and_was_none_is_not_witnessed() -> None:
    """The target was silent by itself before the story had anything to lose."""
    lost = Injection("lost", (Choice("lost_reply"),), ("search",))
    assert story_of([lost], call(), fails="timed_out")[0] == ["scheduled"]
    assert story_of([lost], call())[0] == ["scheduled", "injected", "witnessed"]


def test_a_lie_that_another_lie_covers_was_injected_and_reached_nobody() -> None:
    wrong = (Choice("wrong_value", params={"factor": 2.0}),)
    stages, faults = story_of([Injection(name, wrong, ("search",)) for name in ("outer", "inner")], call())
    assert [active.injected for active in faults.active] == [True, True]
    assert [stages.count(stage) for stage in ("scheduled", "injected", "witnessed")] == [2, 2, 1]


def test_a_story_with_nothing_to_change_was_scheduled_and_never_injected() -> None:
    lie = Injection("lie", (Choice("truncate_context"),), ("search",))
    assert not lie.conditional
    assert story_of([lie], call())[0] == ["scheduled"]


def test_each_of_several_stories_is_told_and_counted() -> None:
    lie = Injection("lie", (Choice("wrong_value"),), ("search",))
    cut = Injection("cut", (Choice("truncate_context", params={"keep": 0.5}),), ("search",))
    missed = Injection("missed", (Choice("tool_error"),), ("search",), calls=(9,))
    talk = {"messages": [{"role": "user", "content": str(n)} for n in range(4)]}
    stages, faults = story_of([lie, cut, missed], replace(call(), value=talk))
    assert faults.rolled == ["cut", "lie"], "no attempt but those at request 9 concerns the third"
    assert [active.injection for active in faults.active] == ["cut", "lie"]
    assert stages == ["scheduled", "injected", "scheduled", "injected", "witnessed", "witnessed"]


def test_a_fault_that_nobody_knows_says_what_was_meant() -> None:
    injection = Injection("wire", (Choice("latencyy"),), ("search",))
    with pytest.raises(LookupError, match="did you mean 'latency'"):
        roll(Plan(1), injection, call())


def test_an_occasion_without_more_is_of_a_first_turn_in_which_nothing_was_met() -> None:
    call = Call("search", "find", "p1.r1", 3, 2)
    there = Occasion.from_json(7, call, {})
    assert (there.turn, there.in_turn, there.elapsed_s, there.met, there.under_way) == (1, 3, 0.0, {}, 0)
    told = {
        "turn": 2,
        "in_turn": 1,
        "elapsed_s": 4.5,
        "arguments": {"a": 1},
        "under_way": 2,
        "met": {"f": {"injection": "f", "times": 3}},
    }
    there = Occasion.from_json(7, call, told)
    assert (there.turn, there.in_turn, there.elapsed_s, there.arguments, there.under_way) == (2, 1, 4.5, {"a": 1}, 2)
    assert (there.met["f"].times, there.met["f"].first) == (3, ("", 0, 0))
