"""The recoveries of two sides: the log-rank test and the difference in the restricted mean, by pairs."""

import math
from statistics import NormalDist

import pytest

from chaoslab.analysis.measures.two_recoveries import Lasted, TwoRecoveries, two_recoveries
from chaoslab.base.dice import Dice
from tests.sure import sure


def side(durations: list[float], *, recovered: bool = True) -> list[Lasted]:
    return [Lasted(str(n), duration_s, recovered) for n, duration_s in enumerate(durations)]


def found(base: list[Lasted], new: list[Lasted]) -> TwoRecoveries:
    return sure(two_recoveries(base, new))


def test_slower_recoveries_are_shown() -> None:
    draw = Dice(1, "recovery", 1).stream().random
    base = [draw() for _ in range(60)]
    both = found(side(base), side([each + 0.5 for each in base]))
    assert both.mean_s[1] - both.mean_s[0] == pytest.approx(0.5)
    assert sure(both.p) < 0.001
    assert both.interval.low == pytest.approx(0.5)  # each pair differs alike


def test_equal_sides_do_not_differ() -> None:
    both = found(side([1.0, 2.0] * 10), side([1.0, 2.0] * 10))
    assert (both.p, both.interval.low, both.interval.high) == (None, 0.0, 0.0)


def test_what_never_recovers_lasts_as_long_as_the_longest_of_both_sides() -> None:
    both = found(side([1.0] * 10), [*side([1.0] * 9), Lasted("9", 0.5, False)])
    assert both.recovered == (10, 9)
    assert both.horizon_s == 1.0
    slow = found([*side([1.0] * 9), Lasted("9", 11.0, True)], [*side([1.0] * 9), Lasted("9", 0.5, False)])
    assert slow.mean_s == pytest.approx((2.0, 2.0))


def test_a_cut_log_ends_the_horizon() -> None:
    both = found(side([1.0] * 9 + [4.0]), [*side([1.0] * 9), Lasted("9", 3.0, False, True)])
    assert both.horizon_s == 3.0


def test_too_few_incidents_are_not_compared() -> None:
    assert two_recoveries(side([1.0] * 7), side([1.0] * 20)) is None


def test_the_test_errs_as_often_as_it_says() -> None:
    draw = Dice(3, "null", 1).stream().random
    small = 0
    for _ in range(300):
        hard = [draw() for _ in range(20)]  # the same difficulty on both sides
        base, new = ([0.2 + each + draw() for each in hard] for _ in range(2))
        p = found(side(base), side(new)).p
        small += p is not None and p < 0.05
    assert small / 300 <= 0.1


def test_the_log_rank_p_is_that_of_what_was_seen_less_what_was_expected() -> None:
    """Each incident has a group of its own, so that its residual is a term of the variance."""
    spells = [(n / 3, n % 4 != 0, n > 10) for n in range(1, 25)]
    base, new = (
        [Lasted(str(at), at, ended, True) for at, ended, late in spells if late is side] for side in (False, True)
    )
    residuals = {False: 0.0, True: 0.0}
    squares = 0.0
    for at, ended, late in spells:
        ends = [when for when, over, _ in spells if over and when <= at]
        residual = ended - sum(1 / sum(other >= when for other, _, _ in spells) for when in ends)
        residuals[late] += residual
        squares += residual**2
    z = abs(residuals[True] - residuals[False]) / math.sqrt(squares)
    assert found(base, new).p == pytest.approx(2 * NormalDist().cdf(-z))
