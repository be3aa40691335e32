"""Intervals agree with published values and with what was worked out by hand."""

import math
import random
from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean, stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaoslab.analysis.measures.intervals import (
    FAINT,
    Interval,
    Spell,
    _BinomialTail,
    _log_binomial_coefficient,
    _upper_tail_chance,
    clopper_pearson_interval,
    compute_design_effect,
    compute_flag_rate,
    compute_pooled_rate,
    compute_rate,
    is_chance_plausible,
    kaplan_meier,
    mean_interval,
    wilson_interval,
)
from tests.sure import sure

FREIREICH_6MP = [
    *(Spell(t) for t in (6, 6, 6, 7, 10, 13, 16, 22, 23)),
    *(Spell(t, ended=False) for t in (6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35)),
]
"""Weeks of remission under 6-MP (Freireich and others 1963), the textbooks' own example."""


def test_wilson_agrees_with_newcombes_published_example() -> None:
    interval = sure(wilson_interval(81, 263))  # Newcombe 1998, table I
    assert (round(interval.low, 4), round(interval.high, 4)) == (0.2553, 0.3662)


def test_wilson_at_the_edges_stays_within_0_and_1() -> None:
    none, every = sure(wilson_interval(0, 10)), sure(wilson_interval(10, 10))
    assert none.low == 0.0
    assert none.high == pytest.approx(0.2775, abs=1e-4)
    assert every.low == pytest.approx(1 - none.high)
    assert every.high == 1.0


def test_clopper_pearson_agrees_with_newcombe_and_with_the_rule_of_three() -> None:
    exact, zero = sure(clopper_pearson_interval(81, 263)), sure(clopper_pearson_interval(0, 20))
    assert (round(exact.low, 4), round(exact.high, 4)) == (0.2527, 0.3676)
    assert zero.low == 0.0
    assert zero.high == pytest.approx(1 - 0.025 ** (1 / 20))


@pytest.mark.parametrize(("confidence", "z"), [(0.95, 1.959964), (0.99, 2.575829)])
def test_wilsons_bounds_are_where_the_rate_is_as_many_deviations_off_as_the_confidence_allows(
    confidence: float, z: float
) -> None:
    interval = sure(wilson_interval(81, 263, confidence=confidence))
    for bound in (interval.low, interval.high):
        assert abs(81 / 263 - bound) == pytest.approx(z * math.sqrt(bound * (1 - bound) / 263), rel=1e-5)


@pytest.mark.parametrize(("count", "total"), [(3, 20), (10, 20), (11, 20), (17, 20), (1, 2)])
@pytest.mark.parametrize("confidence", [0.95, 0.99])
def test_clopper_pearson_leaves_half_of_the_doubt_on_either_side(count: int, total: int, confidence: float) -> None:
    def chance_of(counts: range, p: float) -> float:
        return sum(math.comb(total, k) * p**k * (1 - p) ** (total - k) for k in counts)

    interval = sure(clopper_pearson_interval(count, total, confidence=confidence))
    tail = (1 - confidence) / 2
    assert chance_of(range(count, total + 1), interval.low) == pytest.approx(tail, rel=1e-9)
    assert chance_of(range(count + 1), interval.high) == pytest.approx(tail, rel=1e-9)


@given(
    st.integers(1, 3000).flatmap(lambda total: st.tuples(st.integers(0, total), st.just(total))),
    st.floats(1e-6, 1 - 1e-6),
)
def test_terms_that_are_left_out_of_the_binomial_sum_do_not_change_it(counts: tuple[int, int], chance: float) -> None:
    at_least = _BinomialTail(*counts)
    _, total = counts
    terms = [
        _log_binomial_coefficient(total, k) + k * math.log(chance) + (total - k) * math.log1p(-chance)
        for k in at_least._tail
    ]
    share = math.fsum(map(math.exp, terms))
    assert at_least(chance) == pytest.approx(share if at_least._upper else 1 - share, rel=1e-15, abs=0)
    assert 3000 * math.exp(-FAINT) < 1e-18


def test_clopper_pearson_has_no_doubt_beyond_all() -> None:
    every = sure(clopper_pearson_interval(20, 20))
    assert every.low == pytest.approx(0.025 ** (1 / 20))
    assert every.high == 1.0


def test_a_rate_is_its_share_with_wilsons_interval_and_an_interval_holds_its_own_bounds() -> None:
    found = sure(compute_rate(3, 4))
    assert (found.count, found.total, found.value, found.interval) == (3, 4, 0.75, wilson_interval(3, 4))
    interval = Interval(0.25, 0.5)
    assert [value in interval for value in (0.2, 0.25, 0.3, 0.5, 0.6)] == [False, True, True, True, False]


def test_what_never_or_always_happens_has_happened_that_often() -> None:
    """Rounding takes the search for a bound to either end, where no logarithm helps."""
    assert [_upper_tail_chance(count, 4, 0.0) for count in (0, 1, 4)] == [1.0, 0.0, 0.0]
    assert [_upper_tail_chance(count, 4, 1.0) for count in (0, 1, 4)] == [1.0, 1.0, 1.0]


def test_clopper_pearson_is_a_mirror_image_of_itself() -> None:
    some, rest = (
        sure(clopper_pearson_interval(3, 2000, confidence=0.999)),
        sure(clopper_pearson_interval(1997, 2000, confidence=0.999)),
    )
    assert some.low == pytest.approx(1 - rest.high, rel=1e-6)
    assert some.high == pytest.approx(1 - rest.low, rel=1e-6)


def test_nothing_counted_has_no_interval() -> None:
    assert wilson_interval(0, 0) is None
    assert clopper_pearson_interval(0, 0) is None
    assert compute_rate(0, 0) is None
    assert kaplan_meier([]) is None


def test_a_curve_of_a_hundred_thousand_spells_is_made_at_once() -> None:
    """Each time of its own: counting anew at each would be ten thousand million steps."""
    curve = sure(kaplan_meier([Spell(n / 7, ended=n % 3 > 0) for n in range(100_000)]))
    assert (len(curve.steps), curve.steps[0].at_risk) == (66_666, 99_999)


def test_a_mean_has_an_interval_from_twelve_values_or_groups_on() -> None:
    values = [float(n % 6) for n in range(12)]
    found = sure(mean_interval(values))
    half = 2.200985 * stdev(values) / 12**0.5  # Student's t with 11 degrees of freedom
    assert (found.low, found.high) == pytest.approx((2.5 - half, 2.5 + half), rel=1e-6)
    assert mean_interval(values[:11]) is mean_interval([]) is None
    assert mean_interval(values * 9, [n % 11 for n in range(108)]) is None
    assert mean_interval([5.0] * 12) == Interval(5.0, 5.0)


def test_a_rate_over_prompts_with_one_trial_each_is_the_exact_one() -> None:
    for count in range(27):
        exact = sure(clopper_pearson_interval(count, 26))
        found = sure(compute_flag_rate((n < count for n in range(26)), range(26)))
        assert (found.count, found.total, found.prompts) == (count, 26, 26)
        assert (found.interval.low, found.interval.high) == pytest.approx((exact.low, exact.high))


def test_trials_of_one_prompt_have_wilsons_interval() -> None:
    assert compute_flag_rate([True, False, True], [None] * 3) == compute_rate(2, 3)
    assert compute_flag_rate([], []) is None


def test_one_more_bad_trial_never_raises_a_bound() -> None:
    rates = [sure(compute_pooled_rate([(40, 40)] * 25 + [(well, 40)])) for well in range(41)]
    lows, highs = [each.interval.low for each in rates], [each.interval.high for each in rates]
    assert all(later >= one - 0.001 for one, later in pairwise(lows))  # for the beta is not exact
    assert all(later >= one - 0.001 for one, later in pairwise(highs))
    assert all(each.value in each.interval for each in rates)


@pytest.mark.parametrize("prompts", [4, 26])
@pytest.mark.parametrize("shares", [(0.95,), (0.2, 0.98, 0.98, 0.98), (0.1, 0.3, 0.5, 0.7, 0.9, 1.0)])
def test_a_rate_over_prompts_covers_its_mean_however_they_spread(prompts: int, shares: Sequence[float]) -> None:
    dice, held, independent = random.Random(3), 0, 0
    for _ in range(200):
        each = [dice.choice(shares) for _ in range(prompts)]
        found = sure(compute_pooled_rate([(sum(dice.random() < one for _ in range(40)), 40) for one in each]))
        held += fmean(shares) in found.interval
        independent += fmean(shares) in sure(wilson_interval(found.count, found.total))
    assert held >= 190
    assert independent < 150 or len(shares) == 1  # Wilson's, which takes trials of a prompt for independent


def test_kaplan_meier_agrees_with_the_textbook() -> None:
    curve = sure(kaplan_meier(FREIREICH_6MP))
    shares = {step.at_s: round(step.share, 3) for step in curve.steps}
    assert shares == {6: 0.857, 7: 0.807, 10: 0.753, 13: 0.690, 16: 0.627, 22: 0.538, 23: 0.448}
    errors = {step.at_s: round(step.share * math.sqrt(step.greenwood), 4) for step in curve.steps}
    assert errors == {6: 0.0764, 7: 0.0869, 10: 0.0963, 13: 0.1068, 16: 0.1141, 22: 0.1282, 23: 0.1346}
    bounds = [(round(step.interval.low, 3), round(step.interval.high, 3)) for step in curve.steps]
    assert (bounds[0], bounds[-1]) == ((0.620, 0.952), (0.188, 0.680))
    at_risk = {step.at_s: (step.at_risk, step.ended) for step in curve.steps}
    assert at_risk == {6: (21, 3), 7: (17, 1), 10: (15, 1), 13: (12, 1), 16: (11, 1), 22: (7, 1), 23: (6, 1)}
    assert curve.horizon_s == 35


def test_its_median_and_restricted_mean_agree_too() -> None:
    curve = sure(kaplan_meier(FREIREICH_6MP))
    assert curve.median is not None
    assert (curve.median.value, curve.median.interval.low, curve.median.interval.high) == (23, 13, math.inf)
    mean = curve.restricted_mean
    assert mean.value == pytest.approx(23.287, abs=1e-3)
    assert (mean.interval.high - mean.value) / 1.959964 == pytest.approx(2.83, abs=5e-3)


def test_without_censoring_the_restricted_mean_is_the_mean() -> None:
    curve = sure(kaplan_meier([Spell(t) for t in (1, 2, 3, 6)]))
    assert (curve.restricted_mean.value, sure(curve.median).value) == (3.0, 2)


def test_where_all_has_ended_there_is_nothing_left_to_be_unsure_of() -> None:
    curve = sure(kaplan_meier([Spell(t) for t in (1, 2, 3, 6)]))
    assert curve.steps[-1].share == 0
    assert curve.steps[-1].interval == Interval(0.0, 0.0)
    assert curve.steps[-1].greenwood == math.inf


def test_the_median_is_where_just_one_half_is_left_whatever_rounding_makes_of_it() -> None:
    curve = sure(kaplan_meier([Spell(float(t)) for t in range(1, 39)]))
    assert curve.steps[18].share > 0.5  # 1 · 37/38 · 36/37 …: one half, and two units in the last place
    assert sure(curve.median).value == 19
    even = sure(kaplan_meier([Spell(1, ended=True), Spell(2, ended=True), Spell(3, ended=False)]))
    assert sure(even.median).value == 2


def test_a_mean_of_two_is_bounded_by_nothing_and_by_all_that_was_seen() -> None:
    curve = sure(kaplan_meier([Spell(1), Spell(9)]))
    assert curve.restricted_mean.value == 5
    assert curve.restricted_mean.interval == Interval(0.0, 9)
    assert sure(curve.median).interval == Interval(1, 9)


def test_the_spread_of_a_restricted_mean_is_greenwoods() -> None:
    curve = sure(kaplan_meier([Spell(t) for t in (4, 5, 6, 7)]))
    mean = curve.restricted_mean
    # Without censoring Greenwood's variance of the mean is that of the values (by n) over n: 1.25 / 4.
    assert mean.value == 5.5
    assert mean.interval.high == pytest.approx(5.5 + 1.959964 * math.sqrt(1.25 / 4), rel=1e-6)
    assert mean.interval.low == pytest.approx(5.5 - 1.959964 * math.sqrt(1.25 / 4), rel=1e-6)


def test_a_median_that_was_never_reached_is_none() -> None:
    curve = sure(kaplan_meier([Spell(1), Spell(2, ended=False), Spell(3, ended=False)]))
    assert curve.median is None
    assert curve.restricted_mean.value == pytest.approx(1 + 2 * 2 / 3)


@pytest.mark.parametrize(("count", "total"), [(0, 7), (7, 7), (3, 20), (81, 263)])
def test_a_chance_is_plausible_just_within_clopper_and_pearsons_interval(count: int, total: int) -> None:
    interval = sure(clopper_pearson_interval(count, total, confidence=0.99))
    near = [bound + off for bound in (interval.low, interval.high) for off in (-1e-6, 1e-6)]
    for chance in (0.0, 1.0, *(one for one in near if 0 < one < 1)):
        assert is_chance_plausible(count, total, chance, confidence=0.99) == (chance in interval), chance


def test_the_design_effect_is_that_of_a_hand_calculation() -> None:
    # (2² + 2²) · 2/1 over 4 · 1²
    assert compute_design_effect([1.0, 1.0, -1.0, -1.0], ["a", "a", "b", "b"]) == 4.0
    assert compute_design_effect([1.0, -1.0, 1.0, -1.0], ["a", "a", "b", "b"]) == 1.0
    assert compute_design_effect([1.0, -1.0, 2.0, -2.0], ["a", "b", "c", "d"]) == 1.0
    assert compute_design_effect([1.0, -1.0], ["a", "a"]) == 1.0


def test_values_that_are_their_own_groups_have_the_same_intervals() -> None:
    spells = [Spell(n / 7, ended=n % 3 > 0) for n in range(60)]
    assert kaplan_meier(spells, [str(n) for n in range(60)]) == kaplan_meier(spells)
    values = [float(n % 7) for n in range(50)]
    assert mean_interval(values, [str(n) for n in range(50)]) == mean_interval(values)


def test_a_value_told_four_times_says_no_more_than_told_once() -> None:
    spells = [Spell((n * 37 % 41) / 4, ended=n % 4 > 0) for n in range(41)]
    names = [str(n) for n in range(41)]
    once, blind, told = kaplan_meier(spells), kaplan_meier(spells * 4), kaplan_meier(spells * 4, names * 4)
    assert once
    assert blind
    assert told
    widths = [each.restricted_mean.interval.high - each.restricted_mean.interval.low for each in (once, blind, told)]
    assert widths[1] < 0.55 * widths[0]
    assert widths[2] == pytest.approx(widths[0], rel=0.06)
    assert told.restricted_mean.value == pytest.approx(once.restricted_mean.value)
    lows = [each.steps[20].interval.low for each in (once, blind, told)]
    assert lows[1] > lows[2] == pytest.approx(lows[0], abs=0.02)
    values = [spell.duration_s for spell in spells]
    single, four = mean_interval(values), mean_interval(values * 4, names * 4)
    assert single
    assert four
    assert four.high - four.low == pytest.approx(single.high - single.low, rel=0.06)


@pytest.mark.parametrize(("grouped", "least", "most"), [(True, 0.9, 1.0), (False, 0.0, 0.8)])
def test_the_intervals_cover_the_truth_where_the_incidents_of_a_trial_go_together(
    *, grouped: bool, least: float, most: float
) -> None:
    """40 trials of 8 incidents; in half of them repairs take 2 s in the mean, in the others 8 s, cut off after 12 s."""
    dice = random.Random(5)
    truth = fmean(mean * (1 - math.exp(-12 / mean)) for mean in (2.0, 8.0))
    held = 0
    for _ in range(100):
        means = [dice.choice((2.0, 8.0)) for _ in range(40)]
        took = [(str(trial), dice.expovariate(1 / mean)) for trial, mean in enumerate(means) for _ in range(8)]
        spells = [Spell(min(seconds, 12.0), ended=seconds <= 12) for _, seconds in took]
        curve = kaplan_meier(spells, [trial for trial, _ in took] if grouped else None)
        held += curve is not None and truth in curve.restricted_mean.interval
    assert least <= held / 100 <= most
