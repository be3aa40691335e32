"""The power of a test that may be looked at after every pair, and the interval of a change."""

import pytest

from chaoslab.analysis.measures.anytime import (
    PairCounts,
    compute_change_evidence,
    compute_change_interval,
    compute_e_value,
    compute_power,
    count_pairs_needed,
    list_min_worse_counts,
    min_detectable_change,
)
from chaoslab.analysis.measures.intervals import student_t_quantile
from chaoslab.base.dice import Dice
from tests.sure import sure


def test_the_evidence_is_a_losing_bet_where_it_is_better_and_no_number_that_json_lacks() -> None:
    for worse, better in ((0, 0), (3, 1), (20, 10)):
        assert 0.4 * compute_e_value(worse + 1, better) + 0.6 * compute_e_value(worse, better + 1) < compute_e_value(
            worse, better
        )
    assert compute_e_value(5000, 0) == pytest.approx(1e300)


def test_seven_pairs_of_seven_decide_and_six_do_not() -> None:
    bounds = list_min_worse_counts(0.05)
    assert [bounds[n] <= n for n in (5, 6, 7, 8)] == [False, False, True, True]
    for discordant in (20, 100):
        worse = bounds[discordant]
        assert compute_e_value(worse, discordant - worse) >= 20 > compute_e_value(worse - 1, discordant - worse + 1)


@pytest.mark.parametrize(("worse", "better", "pairs"), [(0.25, 0.05, 60), (0.12, 0.02, 100)])
def test_the_power_is_that_of_simulated_comparisons(worse: float, better: float, pairs: int) -> None:
    draw, bounds, shown, runs = Dice(1, "power", pairs).make_generator().random, list_min_worse_counts(0.05), 0, 1500
    for _ in range(runs):
        counts = [0, 0]
        for _ in range(pairs):
            drawn = draw()
            if drawn < worse + better:
                counts[drawn >= worse] += 1
                if counts[0] >= bounds[sum(counts)]:
                    shown += 1
                    break
    assert compute_power(worse, better, pairs, alpha=0.05) == pytest.approx(shown / runs, abs=0.04)


@pytest.mark.parametrize(
    ("worse", "better", "pairs", "found"),
    [(1.0, 0.0, 7, 1.0), (1.0, 0.0, 6, 0.0), (0.0, 0.0, 9, 0.0), (0.1, 0.1, 0, 0.0), (0.02, 0.0, 40_000, 1.0),
     (0.5, 0.5, 700, 0.043015691)],
)  # fmt: skip
def test_the_power_of_nothing_and_of_all(worse: float, better: float, pairs: int, found: float) -> None:
    assert compute_power(worse, better, pairs, alpha=0.05) == pytest.approx(found)


def test_the_pairs_that_are_needed_are_the_fewest_with_the_power() -> None:
    found = sure(count_pairs_needed(0.12, 0.02, alpha=0.05, least=0.9))
    assert compute_power(0.12, 0.02, found - 1, alpha=0.05) < 0.9 <= compute_power(0.12, 0.02, found, alpha=0.05)
    assert count_pairs_needed(0.1, 0.1, alpha=0.05, least=0.9) is None
    assert count_pairs_needed(1.0, 0.0, alpha=0.05, least=0.9) == 7


def test_what_would_have_been_shown_shrinks_with_the_pairs() -> None:
    shares = [min_detectable_change(pairs, alpha=0.05, least=0.9) for pairs in (6, 7, 40, 200, 1000)]
    assert shares[0] is None
    known = [share for share in shares if share is not None]
    assert known == sorted(known, reverse=True)
    assert known[-1] < 0.02


def test_the_interval_of_a_change_excludes_0_where_the_evidence_decides() -> None:
    for worse, same, better in ((8, 10, 0), (9, 10, 0), (30, 100, 10), (0, 50, 9), (5, 400, 5)):
        interval = compute_change_interval([PairCounts(worse, same, better)], 0.05)
        assert (interval.high < 0) == (compute_e_value(worse, better) >= 40)
        assert (interval.low > 0) == (compute_e_value(better, worse) >= 40)
        assert (better - worse) / (worse + same + better) in interval
        turned = compute_change_interval([PairCounts(better, same, worse)], 0.05)
        assert (turned.low, turned.high) == pytest.approx((-interval.high, -interval.low), abs=1e-5)


def test_the_interval_holds_the_change_at_every_look_but_for_few() -> None:
    missed, runs = 0, 100
    for run in range(runs):
        draw, counts = Dice(run, "interval").make_generator().random, [0, 0, 0]
        for n in range(1, 201):
            drawn = draw()
            counts[0 if drawn < 0.2 else 2 if drawn < 0.3 else 1] += 1
            if n % 10 == 0 and -0.1 not in compute_change_interval([PairCounts(*counts)], 0.05):
                missed += 1
                break
    assert missed <= 0.05 * runs


def test_prompts_with_more_trials_count_no_more_than_others() -> None:
    # One prompt is worse in all of its 30 pairs, the other better in all of its 10: on the average nothing changed.
    even = [PairCounts(30, 0, 0, 1 / 3), PairCounts(0, 0, 10)]
    assert compute_change_evidence(even) < 1 < compute_change_evidence([PairCounts(30, 0, 10)])
    assert compute_change_evidence([PairCounts(7, 3, 1)]) == pytest.approx(compute_e_value(7, 1))


@pytest.mark.parametrize(
    ("chance", "freedom", "value"),
    [(0.025, 1, 12.7062), (0.025, 2, 4.30265), (0.05, 3, 2.35336), (0.025, 7, 2.36462), (0.0125, 25, 2.38461),
     (0.005, 10, 3.16927)],
)  # fmt: skip
def test_students_t_by_its_table(chance: float, freedom: int, value: float) -> None:
    assert student_t_quantile(chance, freedom) == pytest.approx(value, rel=1e-5)
