"""McNemar's exact test, against values worked out by hand."""

from __future__ import annotations

import pytest

from chaoslab.analysis.measures.paired import mcnemar


@pytest.mark.parametrize(
    ("worse", "better", "p"),
    [
        (5, 1, 2 * (1 + 6) / 2**6),
        (1, 5, 0.21875),
        (6, 0, 0.03125),
        (0, 1, 1.0),
        (2, 2, 1.0),
        (10, 2, 2 * (1 + 12 + 66) / 4096),
        (2000, 0, 0.0),
    ],
)
def test_values_worked_out_by_hand(worse: int, better: int, p: float) -> None:
    assert mcnemar(worse, better) == pytest.approx(p)


def test_without_a_discordant_pair_there_is_no_p() -> None:
    assert mcnemar(0, 0) is None
