"""The estimates of MTTR are right where a third of the repairs is cut off; benchmarks/mttr_estimators.py has more."""

import random

import pytest

from benchmarks.mttr_estimators import ALL, MEDIAN, PLAIN, RESTRICTED, SHAPES, Repairs, measure, simulated
from chaoslab.analysis.measures.mttr import summarize_recovery


@pytest.mark.parametrize("scheme", ["random", "deadline"])
@pytest.mark.parametrize("law", SHAPES)
def test_the_median_and_the_restricted_mean_are_right_and_the_plain_mean_is_not(law: str, scheme: str) -> None:
    found = measure(SHAPES[law], scheme, repetitions=30, incidents=200, seed=1, bootstrap=False)
    assert found.censored == pytest.approx(0.3, abs=0.01)
    assert abs(found.scores[RESTRICTED].bias) < 0.05
    assert abs(found.scores[MEDIAN].bias) < 0.05
    # 2.3 standard deviations of 30 repetitions below 95 %
    assert found.scores[RESTRICTED].coverage >= 0.86
    assert found.scores[MEDIAN].coverage >= 0.86
    assert found.scores[PLAIN].bias < -0.15


def test_no_estimate_sees_the_repairs_beyond_a_deadline() -> None:
    found = measure(1.0, "deadline", repetitions=20, incidents=200, seed=1, bootstrap=False)
    # E[min(T, d)] of exponential repairs is the share that ended before d: 0.7 of the mean
    assert found.scores[ALL].bias == pytest.approx(-0.3, abs=0.03)


def test_a_run_shows_the_estimates_that_are_measured_here() -> None:
    incidents = simulated(Repairs(1.0), "deadline", incidents=40, censoring_s=12.0, dice=random.Random(1))
    found = summarize_recovery(incidents)
    assert (found.n, found.horizon_s) == (40, 12.0)
    assert 0 < found.censored < 40
    assert found.restricted_mean is not None
    assert found.restricted_mean.value == pytest.approx(sum(i.duration_s for i in incidents) / 40)


@pytest.mark.parametrize(("shape", "horizon_s", "by_hand"), [
    (1.0, 10.0, 6.3212056),  # 10 · (1 − 1/e)
    (1.0, 400.0, 10.0),
    (0.5, 5.0, 2.6424112),  # scale 5; with t = 5u²: 10 · ∫ u e^−u du from 0 to 1 = 10 · (1 − 2/e)
])  # fmt: skip
def test_the_true_restricted_mean_is_right(shape: float, horizon_s: float, by_hand: float) -> None:
    assert Repairs(shape).restricted_mean_s(horizon_s) == pytest.approx(by_hand, rel=1e-6)
