"""Intervals agree with published values and with what was worked out by hand."""

from __future__ import annotations

import math

import pytest

from chaoslab.measures.intervals import Interval, Spell, bootstrap_mean, clopper_pearson, kaplan_meier, rate, wilson

FREIREICH_6MP = [
    *(Spell(t) for t in (6, 6, 6, 7, 10, 13, 16, 22, 23)),
    *(Spell(t, ended=False) for t in (6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35)),
]
"""Weeks of remission under 6-MP (Freireich and others 1963), the textbooks' own example."""


def test_wilson_agrees_with_newcombes_published_example() -> None:
    interval = wilson(81, 263)  # Newcombe 1998, table I
    assert interval is not None
    assert (round(interval.low, 4), round(interval.high, 4)) == (0.2553, 0.3662)


def test_wilson_at_the_edges_stays_within_0_and_1() -> None:
    none, every = wilson(0, 10), wilson(10, 10)
    assert none is not None
    assert every is not None
    assert none.low == 0.0
    assert none.high == pytest.approx(0.2775, abs=1e-4)
    assert every.low == pytest.approx(1 - none.high)
    assert every.high == 1.0


def test_clopper_pearson_agrees_with_newcombe_and_with_the_rule_of_three() -> None:
    exact, zero = clopper_pearson(81, 263), clopper_pearson(0, 20)
    assert exact is not None
    assert zero is not None
    assert (round(exact.low, 4), round(exact.high, 4)) == (0.2527, 0.3676)
    assert zero.low == 0.0
    assert zero.high == pytest.approx(1 - 0.025 ** (1 / 20))


def test_clopper_pearson_is_a_mirror_image_of_itself() -> None:
    some, rest = clopper_pearson(3, 2000, confidence=0.999), clopper_pearson(1997, 2000, confidence=0.999)
    assert some is not None
    assert rest is not None
    assert some.low == pytest.approx(1 - rest.high, rel=1e-6)
    assert some.high == pytest.approx(1 - rest.low, rel=1e-6)


def test_nothing_counted_has_no_interval() -> None:
    assert wilson(0, 0) is None
    assert clopper_pearson(0, 0) is None
    assert rate(0, 0) is None
    assert bootstrap_mean([1.0]) is None
    assert kaplan_meier([]) is None


def test_the_bootstrap_repeats_itself_and_covers_the_mean() -> None:
    values = [1.0, 2.0, 3.0, 4.0, 20.0]
    first, again, other = (bootstrap_mean(values, seed=seed) for seed in (1, 1, 2))
    assert first == again != other
    assert first is not None
    assert 1.0 <= first.low < 6.0 < first.high <= 20.0


def test_of_many_values_the_normal_interval_is_what_the_bootstrap_would_give() -> None:
    """Skewed ones, as times to recovery are: most recover at once, some after a deadline."""
    values = [0.1] * 450 + [2.1] * 40 + [30.0] * 10
    drawn, normal = bootstrap_mean(values), bootstrap_mean([*values, values[0]])
    assert drawn is not None
    assert normal is not None
    assert normal.low == pytest.approx(drawn.low, abs=0.1)
    assert normal.high == pytest.approx(drawn.high, abs=0.1)
    assert bootstrap_mean([5.0] * 501) == Interval(5.0, 5.0)


def test_a_curve_of_a_hundred_thousand_spells_is_made_at_once() -> None:
    """Each time of its own: counting anew at each would be ten thousand million steps."""
    curve = kaplan_meier([Spell(n / 7, ended=n % 3 > 0) for n in range(100_000)])
    assert curve is not None
    assert (len(curve.steps), curve.steps[0].at_risk) == (66_666, 99_999)


def test_kaplan_meier_agrees_with_the_textbook() -> None:
    curve = kaplan_meier(FREIREICH_6MP)
    assert curve is not None
    shares = {step.at_s: round(step.share, 3) for step in curve.steps}
    assert shares == {6: 0.857, 7: 0.807, 10: 0.753, 13: 0.690, 16: 0.627, 22: 0.538, 23: 0.448}
    errors = {step.at_s: round(step.share * math.sqrt(step.greenwood), 4) for step in curve.steps}
    assert errors == {6: 0.0764, 7: 0.0869, 10: 0.0963, 13: 0.1068, 16: 0.1141, 22: 0.1282, 23: 0.1346}


def test_its_median_and_restricted_mean_agree_too() -> None:
    curve = kaplan_meier(FREIREICH_6MP)
    assert curve is not None
    assert curve.median is not None
    assert (curve.median.value, curve.median.interval.low, curve.median.interval.high) == (23, 13, math.inf)
    mean = curve.restricted_mean
    assert mean.value == pytest.approx(23.287, abs=1e-3)
    assert (mean.interval.high - mean.value) / 1.959964 == pytest.approx(2.83, abs=5e-3)


def test_without_censoring_the_restricted_mean_is_the_mean() -> None:
    curve = kaplan_meier([Spell(t) for t in (1, 2, 3, 6)])
    assert curve is not None
    assert curve.median is not None
    assert (curve.restricted_mean.value, curve.median.value) == (3.0, 2)


def test_a_median_that_was_never_reached_is_none() -> None:
    curve = kaplan_meier([Spell(1), Spell(2, ended=False), Spell(3, ended=False)])
    assert curve is not None
    assert curve.median is None
    assert curve.restricted_mean.value == pytest.approx(1 + 2 * 2 / 3)
