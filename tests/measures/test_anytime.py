"""The power of a test that may be looked at after every pair, and confidence sequences."""

import pytest

from chaoslab.analysis.measures.anytime import decides, detectable, e_value, mean_sequence, pairs_needed, power
from chaoslab.base.dice import Dice
from tests.sure import sure


def test_the_evidence_is_a_losing_bet_where_it_is_better_and_no_number_that_json_lacks() -> None:
    for worse, better in ((0, 0), (3, 1), (20, 10)):
        assert 0.4 * e_value(worse + 1, better) + 0.6 * e_value(worse, better + 1) < e_value(worse, better)
    assert e_value(5000, 0) == pytest.approx(1e300)


def test_seven_pairs_of_seven_decide_and_six_do_not() -> None:
    bounds = decides(0.05)
    assert [bounds[n] <= n for n in (5, 6, 7, 8)] == [False, False, True, True]
    for discordant in (20, 100):
        worse = bounds[discordant]
        assert e_value(worse, discordant - worse) >= 20 > e_value(worse - 1, discordant - worse + 1)


@pytest.mark.parametrize(("worse", "better", "pairs"), [(0.25, 0.05, 60), (0.12, 0.02, 100)])
def test_the_power_is_that_of_simulated_comparisons(worse: float, better: float, pairs: int) -> None:
    draw, bounds, shown, runs = Dice(1, "power", pairs).stream().random, decides(0.05), 0, 1500
    for _ in range(runs):
        counts = [0, 0]
        for _ in range(pairs):
            drawn = draw()
            if drawn < worse + better:
                counts[drawn >= worse] += 1
                if counts[0] >= bounds[sum(counts)]:
                    shown += 1
                    break
    assert power(worse, better, pairs, alpha=0.05) == pytest.approx(shown / runs, abs=0.04)


@pytest.mark.parametrize(
    ("worse", "better", "pairs", "found"),
    [(1.0, 0.0, 7, 1.0), (1.0, 0.0, 6, 0.0), (0.0, 0.0, 9, 0.0), (0.1, 0.1, 0, 0.0), (0.02, 0.0, 40_000, 1.0),
     (0.5, 0.5, 700, 0.043015691)],
)  # fmt: skip
def test_the_power_of_nothing_and_of_all(worse: float, better: float, pairs: int, found: float) -> None:
    assert power(worse, better, pairs, alpha=0.05) == pytest.approx(found)


def test_the_pairs_that_are_needed_are_the_fewest_with_the_power() -> None:
    found = sure(pairs_needed(0.12, 0.02, alpha=0.05, least=0.9))
    assert power(0.12, 0.02, found - 1, alpha=0.05) < 0.9 <= power(0.12, 0.02, found, alpha=0.05)
    assert pairs_needed(0.1, 0.1, alpha=0.05, least=0.9) is None
    assert pairs_needed(1.0, 0.0, alpha=0.05, least=0.9) == 7


def test_what_would_have_been_shown_shrinks_with_the_pairs() -> None:
    shares = [detectable(pairs, alpha=0.05, least=0.9) for pairs in (6, 7, 40, 200, 1000)]
    assert shares[0] is None
    known = [share for share in shares if share is not None]
    assert known == sorted(known, reverse=True)
    assert known[-1] < 0.02


def test_a_confidence_sequence_holds_the_mean_at_every_look_but_for_few() -> None:
    missed, runs = 0, 40
    for run in range(runs):
        draw = Dice(run, "sequence", 1).stream().random
        values: list[float] = []
        for n in range(200):
            values.append(draw() ** 2)
            if n >= 59 and n % 10 == 9:
                interval = sure(mean_sequence(values, alpha=0.05))
                if 1 / 3 not in interval:
                    missed += 1
                    break
    assert missed <= 0.1 * runs
    values = [n % 7 + n % 3 / 2 for n in range(60)]
    for some, alpha, low, high in (  # by the formula of theorem 2.2
        (values, 0.05, 2.600853334, 4.199146666), (values * 2, 0.1, 2.889511425, 3.910488575),
        ([0.0] * 41 + [1.0] * 20, 0.05, 0.143996157, 0.511741547),
    ):  # fmt: skip
        sequence = sure(mean_sequence(some, alpha=alpha))
        assert (sequence.low, sequence.high) == pytest.approx((low, high))
    assert mean_sequence(values[:59], alpha=0.05) is None
    assert mean_sequence([0.0, 1.0] * 29, alpha=0.05) is None
    assert mean_sequence([1.0] * 100 + [0.0] * 19, alpha=0.05) is None
