"""R(k, ε, λ) of a run: its pass^k, at the rates of its plan."""

from typing import Any

import pytest

from chaoslab.analysis.measures.consistency import consistency, point
from chaoslab.core.events import RunStarted
from tests.sure import sure

CALLED = ("model", "search")
PASSED = consistency({"1": [True, True, True, False]})


def planned(*injections: dict[str, Any]) -> RunStarted:
    plan = {"seed": 1, "injections": list(injections)}
    return RunStarted(seed=1, settings={}, plan=plan, prompts=1, now="2026-06-01T09:00:00Z", model="m")


def injection(fault: str, chance: float, **more: Any) -> dict[str, Any]:
    return {"name": fault, "choices": [{"fault": fault}], "chance": chance, **more}


def test_chances_of_the_plan_join_and_perturbations_are_apart() -> None:
    run = planned(injection("latency", 0.5), injection("tool_error", 0.2), injection("garble_input", 0.1))
    found = sure(point(run, PASSED, CALLED))
    assert found.epsilon == pytest.approx(0.1)
    assert found.rate == pytest.approx(1 - 0.5 * 0.8)
    assert found.at == pytest.approx({1: 3 / 4, 2: 3 / 6, 3: 1 / 4, 4: 0})


def test_chances_of_faults_that_no_call_can_both_meet_do_not_join() -> None:
    run = planned(
        injection("refusal", 0.2, targets=["model"]),
        injection("latency", 0.1, targets=["search", "weather"]),
        injection("tool_error", 0.3, targets=["se*"]),
        injection("stale", 0.9, targets=["weather"]),  # which nobody called
        injection("garble_input", 0.1, targets=["model"]),
    )
    found = sure(point(run, PASSED, CALLED))
    assert found.epsilon == pytest.approx(0.1)
    assert found.rate == pytest.approx(1 - 0.9 * 0.7)


def test_without_faults_both_rates_are_0() -> None:
    found = sure(point(planned(), PASSED, CALLED))
    assert (found.epsilon, found.rate) == (0, 0)


def test_where_nothing_was_called_no_fault_has_a_rate() -> None:
    found = sure(point(planned(injection("latency", 0.5)), PASSED, ()))
    assert (found.epsilon, found.rate) == (0, 0)


@pytest.mark.parametrize("more", [{"calls": [1]}, {"triggers": {"after_s": 3}}])
def test_a_fault_that_does_not_come_by_chance_has_no_rate(more: dict[str, Any]) -> None:
    assert point(planned(injection("latency", 1.0, **more)), PASSED, CALLED) is None


def test_without_repeated_trials_there_is_no_point() -> None:
    assert point(planned(), None, CALLED) is None
    assert point(None, PASSED, CALLED) is None
