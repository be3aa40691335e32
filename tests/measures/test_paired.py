"""Tests of pairs, against values worked out by hand."""

from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaoslab.analysis.measures.anytime import SHARES, compute_e_value
from chaoslab.base.dice import Dice


@pytest.mark.parametrize(
    ("worse", "better", "evidence"),
    [
        (0, 0, 1.0),
        (1, 0, 3 / 2),  # twice the mean share
        (0, 1, 1 / 2),
        (1, 1, 0.718),  # 4 · the mean of θ · (1 − θ): 4 · (0.75 − 0.75² − 0.008), the last the variance of θ
        (7, 0, None),
        (0, 9, None),
        (40, 20, None),
    ],
)
def test_evidence_worked_out_by_hand(worse: int, better: int, evidence: float | None) -> None:
    found = fmean((2 * share) ** worse * (2 - 2 * share) ** better for share in SHARES)
    assert compute_e_value(worse, better) == pytest.approx(found, rel=1e-12)
    assert evidence is None or evidence == pytest.approx(found)


@given(st.integers(0, 30), st.integers(0, 30))
def test_the_evidence_grows_by_no_more_than_it_may_lose(worse: int, better: int) -> None:
    # Where a discordant pair is as often better, the next evidence is on the average this one.
    after = (compute_e_value(worse + 1, better) + compute_e_value(worse, better + 1)) / 2
    assert after == pytest.approx(compute_e_value(worse, better))


def test_a_side_that_is_no_worse_is_seldom_called_so_however_often_it_is_looked_at() -> None:
    dice, runs, called = Dice(1, "null"), 400, 0
    for run in range(runs):
        worse = better = 0
        for pair in range(120):
            if dice(run, pair).draw_bool(0.5):
                worse += 1
            else:
                better += 1
            if compute_e_value(worse, better) >= 20:
                called += 1
                break
    assert called <= 0.05 * runs + 3 * (0.05 * 0.95 * runs) ** 0.5
