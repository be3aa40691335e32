"""A fault that could hit and hit nothing is named: a trial without its fault proves nothing."""

import warnings
from typing import Any

import pytest

import chaoslab as lab
from chaoslab.analysis.measures.idle import IdleInjections
from chaoslab.core.events import AttemptRef, CallStarted, FaultHeldBack, FaultInjected, FaultScheduled
from tests.event_parts import call_at, fault_at
from tests.event_parts import story as history


def look(*, order: int) -> int:
    return order


def refund(*, order: int, amount: int) -> str:
    return f"refunded {amount} of {order}"


def agent(_prompt: str) -> str:
    return f"{look(order=17)}: {refund(order=17, amount=40)}"


def run(*faults: Any, **options: Any) -> lab.Trial:
    return lab.run(agent, "Refund order 17.", tools=[refund], reads=[look], faults=faults, **options)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"when": "amount > 1000"},
            "'lost_reply on refund' hit nothing: it asks for when='amount > 1000', and no call to refund was such",
        ),
        (
            {"after_calls": 3},
            "'lost_reply on refund' hit nothing: it asks for after_calls=3, and no call to refund was such",
        ),
        (
            {"tool": "refund", "calls": [2]},
            "'lost_reply on refund' hit nothing: it asks for calls=[2], tool='refund', and the calls to refund were "
            "refund; calls= counts all requests to refund",
        ),
        (
            {"tool": "re", "chance": 0.5},
            "'lost_reply on refund' hit nothing: it asks for tool='re', and the calls to refund were refund",
        ),
    ],
)
def test_a_fault_whose_conditions_fit_no_call_is_named(given: Any, said: str) -> None:
    with pytest.warns(lab.NothingHit) as caught:
        trial = run(lab.inject("lost_reply", "refund", **given))
    assert [str(one.message) for one in caught] == [said]
    assert caught[0].filename == __file__
    assert said in trial.warnings
    assert f"warning: {said}\n" in trial.story()


@pytest.mark.parametrize(
    "fault",
    [
        lab.inject("lost_reply", "refund"),
        lab.inject("lost_reply", "refund", when="amount > 10", max_times=1),
        lab.inject("lost_reply", "refund", chance=0.01),
        lab.inject("lost_reply", "refund", chance=0.0),
        lab.inject("lost_reply", "refund", calls=[9]),  # the verdict says that it is invalid
    ],
    ids=str,
)
def test_a_fault_that_hit_or_was_left_to_chance_is_not(fault: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trial = run(fault)
    assert not [said for said in trial.warnings if "hit nothing" in said]


def test_a_fault_that_waits_for_another_is_not_named_where_that_did_not_hit() -> None:
    first = lab.inject("latency", "look", name="first", chance=0.0001)
    assert not run(first, lab.inject("lost_reply", "refund", after="first")).warnings


def test_of_many_trials_a_fault_is_named_once_if_it_hit_in_none() -> None:
    faults = [lab.inject("lost_reply", "refund", when="amount > 1000"), lab.inject("latency", "look")]
    options: dict[str, Any] = {"tools": [refund], "reads": [look]}
    with pytest.warns(lab.NothingHit) as caught:
        assert len(list(lab.run_many(agent, "Refund it.", trials=5, faults=faults, **options))) == 5
    assert len(caught) == 1


def test_a_scenario_that_passes_tells_of_a_fault_that_hit_nothing() -> None:
    made = lab.scenario("refund").agent(agent).tools(refund).reads(look).ask("Refund it.")
    made = made.fault("latency", "look").fault("lost_reply", "refund", when="amount > 1000")
    results = made.run(trials=2)
    assert results.passed
    assert "  note: 'lost_reply on refund' hit nothing: it asks for when='amount > 1000'" in str(results)


def test_a_dry_run_tells_which_faults_depend_on_the_calls() -> None:
    from chaoslab.scenarios.tell import forecast_hits, render_forecast

    made = lab.scenario("refund").agent(agent).tools(refund).reads(look).ask("Refund it.")
    made = made.fault("latency", "look", calls=[2]).fault("lost_reply", "refund", when="amount > 10", chance=0.5)
    (scenario,) = made.check()
    assert list(render_forecast(scenario, trials=1))[1:] == [
        "  trial 1: latency on look at request 2 of look; lost_reply on refund at the calls that fit "
        "when='amount > 10', each with a chance of 0.5"
    ]
    (scenario,) = (
        lab.scenario("refund").agent(agent).tools(refund).ask("x").fault("timeout", "refund", tool="re*").check()
    )
    assert forecast_hits(scenario, trials=1)["hits"][1][0] == "timeout on refund at request 1 of refund"


@pytest.mark.parametrize("given", [{}, {"calls": [1]}])
def test_a_fault_that_finds_nothing_to_change_is_named(given: Any) -> None:
    said = "'page_lost on look' changed nothing in the 1 call that it hit: it needs a list of at least two entries"
    with pytest.warns(lab.NothingHit, match=said):
        trial = run(lab.inject("page_lost", "look", **given))
    assert trial.warnings == (said,)
    assert "page_lost" in trial.story()
    assert "not injected: it found nothing to change" in trial.story()


def test_one_that_is_left_to_chance_or_met_a_call_that_another_fault_ended_is_not() -> None:
    assert run(lab.inject("page_lost", "look", chance=0.999)).warnings == ()
    assert run(lab.inject("page_lost", "look"), lab.inject("latency", "look")).warnings == ()


def test_what_limits_have_kept_from_hitting_is_told_with_them() -> None:
    it = lab.inject("latency", "look", name="it")
    at = AttemptRef(target="look", request=1, attempt=1, request_id="")
    limits = ("share 0.1", "faults 1", "share 0.1")
    held = [FaultHeldBack(injection="it", at=at, tool="look", limit=limit) for limit in limits]
    call = CallStarted(**call_at("look", "look", 1, 1, ""), arguments={})
    found = IdleInjections()
    found.add_trial(history(call, *held), [it])
    assert found.describe_idle_injections(called=True) == [
        "'it' hit nothing: held back by share 0.1 (2 times), faults 1 (1 time)"
    ]
    hit = [kind(**fault_at("latency", "it", "look", 1, 1, "")) for kind in (FaultScheduled, FaultInjected)]
    found.add_trial(history(call, *hit), [it])
    assert found.describe_idle_injections() == []
    assert not found.register_injections([it])
