"""McNemar's exact test: did the share of bad trials change between two runs of the same trials?

Source: McNemar 1947, in its exact form: under no change each discordant pair (bad in one run alone) is worse or better
with probability 1/2, so the two-sided p is twice the smaller binomial tail, at most 1. Concordant pairs say nothing.
"""

from __future__ import annotations

from fractions import Fraction
from math import comb


def mcnemar(worse: int, better: int) -> float | None:
    """The two-sided p of these discordant pairs; None if there are none."""
    n = worse + better
    if not n:
        return None
    tail = sum(comb(n, k) for k in range(min(worse, better) + 1))
    return min(1.0, float(Fraction(2 * tail, 2**n)))
