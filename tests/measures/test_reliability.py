"""Reliability, against values worked out by hand, over the six trials of `test_impact`."""

import math
from dataclasses import replace

import pytest

from chaoslab.analysis.measures.intervals import compute_pooled_rate, compute_rate, rate_lower_bound
from chaoslab.analysis.measures.reliability import (
    ONE_SIDED,
    Reliability,
    compute_error_budget,
    compute_reliability,
    count_nines,
    count_trials_needed,
)
from chaoslab.analysis.measures.trials import TrialFigures, TrialTable
from chaoslab.analysis.verdict.standing import Standings
from chaoslab.record.rulings import RulingState, TrialRuling
from tests.measures.test_impact import OUTCOMES, history
from tests.sure import sure


def found(outcomes: dict[str, str], **of: float) -> Reliability:
    said = compute_reliability(TrialTable.from_history(history(**of), outcomes), Standings())  # type: ignore[arg-type]
    assert said is not None
    return said


def test_correct_and_honest_trials_ended_well() -> None:
    said = found(OUTCOMES)
    assert (said.available.count, said.available.total) == (3, 6)  # correct, correct, degraded
    assert said.handled is not None
    assert (said.handled.count, said.handled.total) == (2, 4)  # p1.r4 and p2.r1 of the four that met a fault
    assert said.busy_s == 2 + 4 + 6 + 5 + 9 + 3600
    assert said.mtbf_s == said.busy_s / 3
    assert said.mtbf_least_s is None


def test_the_time_between_bad_trials_is_that_of_the_trials_a_scenario_ruled_on() -> None:
    outcomes = OUTCOMES | {"p1.r4": "unknown"}
    states = {"p1.r1": RulingState.INVALID, "p1.r3": RulingState.FAILED, "p1.r4": RulingState.FAILED}
    rulings = {trial: TrialRuling(state) for trial, state in states.items()}
    said = sure(compute_reliability(TrialTable.from_history(history(), outcomes), Standings(rulings=rulings)))
    assert (said.available.count, said.available.total) == (1, 5)  # p2.r1
    assert said.busy_s == 4 + 6 + 5 + 9 + 3600
    assert said.mtbf_s == said.busy_s / 4


def test_without_a_bad_trial_only_a_bound_is_known() -> None:
    said = found(dict.fromkeys(OUTCOMES, "correct"))
    assert said.mtbf_s is None
    assert said.mtbf_least_s == pytest.approx(said.busy_s / math.log(20))
    assert said.proven == pytest.approx(0.05 ** (1 / 2), rel=1e-5)  # of two prompts
    assert (said.nines, said.next_needs) == (0, 29)


@pytest.mark.parametrize("outcome", ["correct", "failed"])
def test_trials_that_took_no_time_say_nothing_about_the_time_between_bad_ones(outcome: str) -> None:
    said = found(dict.fromkeys(OUTCOMES, outcome), seconds=0.0)
    assert (said.busy_s, said.mtbf_s, said.mtbf_least_s) == (0, None, None)


def test_all_bad() -> None:
    said = found(dict.fromkeys(OUTCOMES, "failed"))
    assert (said.available.value, said.proven, said.nines) == (0.0, 0.0, 0)
    assert all(budget.left == 0 for budget in said.budgets)


@pytest.mark.parametrize("outcomes", [{}, dict.fromkeys(OUTCOMES, "invalid"), dict.fromkeys(OUTCOMES, "unknown")])
def test_nothing_judged_is_no_data(outcomes: dict[str, str]) -> None:
    assert compute_reliability(TrialTable.from_history(history(), outcomes), Standings()) is None
    assert compute_reliability(TrialTable(), Standings()) is None


def test_no_nine_is_claimed_beyond_what_the_trials_prove() -> None:
    for unit in ([(2994, 2994)], [(1, 1)] * 2994, [(100, 100)] * 2994, [(2994, 2995)], [(1, 1)] * 2994 + [(0, 1)]):
        assert count_nines(rate_lower_bound(unit, ONE_SIDED)) == 2
    for unit in ([(2995, 2995)], [(1, 1)] * 2995):
        assert count_nines(rate_lower_bound(unit, ONE_SIDED)) == 3
    assert [count_trials_needed(n) for n in (1, 2, 3)] == [29, 299, 2995]
    assert (count_nines(0.0), count_nines(0.9), count_nines(0.995), count_nines(1.0)) == (0, 1, 2, 9)
    assert rate_lower_bound([(0, 10)], ONE_SIDED) == rate_lower_bound([(0, 10), (0, 1)], ONE_SIDED) == 0.0


def test_a_budget_by_hand() -> None:
    spent = compute_error_budget(0.99, sure(compute_rate(996, 1000)))
    assert (spent.allowed, spent.left, spent.burn) == pytest.approx((10.0, 0.6, 0.4))
    missed = compute_error_budget(0.99, sure(compute_rate(975, 1000)))
    assert missed.left == 0.0
    assert missed.burn == pytest.approx(2.5)


def test_a_budget_is_kept_or_missed_only_where_the_interval_says_so() -> None:
    assert [compute_error_budget(0.99, sure(compute_rate(well, 1000))).kept for well in (1000, 993, 970)] == [
        True,
        None,
        False,
    ]
    several = sure(compute_pooled_rate([(125, 125)] * 8))
    assert compute_error_budget(0.99, several).kept is None  # a thousand trials, but of eight prompts
    assert compute_error_budget(0.6, several).kept is True


def test_a_budget_is_not_known_to_be_kept_where_open_trials_could_turn_it() -> None:
    well, least, most = (sure(compute_rate(*counts)) for counts in ((500, 500), (500, 1000), (1000, 1000)))
    assert compute_error_budget(0.9, well).kept is True
    assert compute_error_budget(0.9, well, (least, most)).kept is None
    assert compute_error_budget(0.4, well, (least, most)).kept is True
    assert compute_error_budget(0.9, least, (least, sure(compute_rate(600, 1000)))).kept is False


def test_a_hundred_trials_of_a_prompt_say_as_little_of_other_prompts_as_one() -> None:
    many = TrialTable()
    for n in range(1000):
        many.add_trial(f"p{n}", TrialFigures(prompt=(n % 2, f"prompt {n % 2}"), outcome="correct"))
    said = sure(compute_reliability(many, Standings()))
    assert (said.available.prompts, said.nines) == (2, 0)
    assert said.proven == pytest.approx(0.05 ** (1 / 2))
    alone = TrialTable(many.keys, [replace(row, prompt=(0, "prompt 0")) for row in many.rows])
    assert sure(compute_reliability(alone, Standings())).proven == pytest.approx(0.05 ** (1 / 1000))
