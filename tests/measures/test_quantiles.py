"""Percentiles are exact up to a number of values, and within a stated error beyond."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaoslab.analysis.measures import quantiles
from chaoslab.analysis.measures.quantiles import ERROR, Quantiles

SHARES = (0.0, 0.1, 0.25, 0.5, 0.9, 0.99, 1.0)
VALUES = st.lists(st.floats(0, 1e6).map(lambda value: round(value, 6)), min_size=1, max_size=60)


@given(values=VALUES, cut=st.integers(0, 60))
def test_up_to_that_number_they_are_those_of_numpy(values: list[float], cut: int) -> None:
    found = Quantiles(values[:cut])
    found.add(values[cut:])
    assert found.exact
    assert (found.n, found.longest) == (len(values), max(values))
    for share in SHARES:
        assert found.at(share) == pytest.approx(np.percentile(values, 100 * share), rel=1e-12, abs=1e-12)


@given(values=VALUES, cut=st.integers(0, 60))
def test_beyond_it_they_are_within_the_error_of_the_value_at_their_rank(values: list[float], cut: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quantiles, "EXACT", 3)
        found = Quantiles(values[:cut])
        found.add(values[cut:])
    assert found.exact is (len(values) <= 3)
    assert (found.n, found.longest) == (len(values), max(values))
    ranked = sorted(values)
    for share in SHARES if not found.exact else ():
        near = ranked[int(share * (len(ranked) - 1))]
        assert abs(found.at(share) - near) <= ERROR * near * (1 + 1e-9)
    if not found.exact:
        assert ranked[0] <= found.at(0.0) <= found.at(0.5) <= found.at(1.0) <= ranked[-1]


@pytest.mark.parametrize("mean_s", [0.002, 0.3, 40.0])
def test_of_many_durations_the_error_is_kept(mean_s: float) -> None:
    draw = random.Random(7)
    values = [draw.expovariate(1 / mean_s) for _ in range(2 * quantiles.EXACT)]
    found = Quantiles()
    for first in range(0, len(values), 30_000):
        found.add(values[first : first + 30_000])
    assert not found.exact
    for share in (0.1, 0.5, 0.9, 0.99):
        assert found.at(share) == pytest.approx(np.percentile(values, 100 * share), rel=1.1 * ERROR)


def test_without_a_value_there_is_none() -> None:
    found = Quantiles()
    assert not found
    assert (found.n, found.exact) == (0, True)
