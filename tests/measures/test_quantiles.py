"""Percentiles are those of NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaoslab.analysis.measures.quantiles import Quantiles

SHARES = (0.0, 0.1, 0.25, 0.5, 0.9, 0.99, 1.0)
VALUES = st.lists(st.floats(0, 1e6).map(lambda value: round(value, 6)), min_size=1, max_size=60)


@given(values=VALUES, cut=st.integers(0, 60))
def test_they_are_those_of_numpy(values: list[float], cut: int) -> None:
    found = Quantiles(values[:cut])
    found.add_values(values[cut:])
    assert (len(found), found.longest) == (len(values), max(values))
    for share in SHARES:
        assert found.value_at(share) == pytest.approx(np.percentile(values, 100 * share), rel=1e-12, abs=1e-12)


def test_without_a_value_there_is_none() -> None:
    found = Quantiles()
    assert not found
    assert len(found) == 0
