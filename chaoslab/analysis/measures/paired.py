"""Pairs of trials, one of each of two sides: did the share of bad ones change?

McNemar 1947, in its exact form: under no change each discordant pair (bad in one run alone) is worse or better
with probability 1/2, so the two-sided p is twice the smaller binomial tail, at most 1. Concordant pairs say nothing.
"""

from __future__ import annotations

from fractions import Fraction
from math import comb, exp, log

from chaoslab.analysis.measures.intervals import wilson

SHARES = [each / 100 for each in range(60, 91)]
"""The shares of worse ones among discordant pairs that the evidence looks for. They were chosen by the power at the
changes of benchmarks/compare.py: with 0.5 to 1, a drop from .95 to .90 is shown less often by 0.05."""
_RATIOS = [(log(2 * share), log(2 * (1 - share))) for share in SHARES]
MOST = 1e300
"""The largest evidence that is told."""
_MOST = log(MOST)


def mcnemar(worse: int, better: int) -> float | None:
    """The two-sided p of these discordant pairs; None if there are none."""
    n = worse + better
    if not n:
        return None
    tail = sum(comb(n, k) for k in range(min(worse, better) + 1))
    return min(1.0, float(Fraction(2 * tail, 2**n)))


def e_value(worse: int, better: int) -> float:
    """The evidence of these discordant pairs, in any order, that the new side is worse: an e-value, which may be looked
    at after every pair. Where the new side is not worse, it ever reaches 1 / alpha with a chance of alpha at most.

    It is the likelihood ratio of θ to 1/2, averaged over the θ in `SHARES`, where θ is the chance that a discordant
    pair is worse. Each ratio is a supermartingale wherever θ is 1/2 or less, hence so is their mean (Ville's
    inequality; A. Ramdas et al., Game-theoretic statistics and safe anytime-valid inference, Statistical Science 38(4),
    2023).
    """
    logs = [worse * if_worse + better * if_better for if_worse, if_better in _RATIOS]
    return min(MOST, sum(map(exp, (min(each, _MOST) for each in logs))) / len(logs))


def difference(base: int, new: int, worse: int, better: int, pairs: int) -> tuple[float, float]:
    """The 95 % interval of the change in the share of good pairs, from −1 to 1: method 10 of R. G. Newcombe, Statistics
    in Medicine 17, 1998. `base`, `new`: the good ones on each side; `pairs`: all, above 0."""
    one, other = wilson(base, pairs), wilson(new, pairs)
    assert one is not None
    assert other is not None
    p1, p2 = base / pairs, new / pairs
    kept, lost = base - worse, pairs - base - better
    product = base * (pairs - base) * new * (pairs - new)
    top = kept * lost - worse * better
    phi = 0.0 if not product else (max(top - pairs / 2, 0.0) if top > 0 else float(top)) / product**0.5
    low = ((p2 - other.low) ** 2 - 2 * phi * (p2 - other.low) * (one.high - p1) + (one.high - p1) ** 2) ** 0.5
    high = ((other.high - p2) ** 2 - 2 * phi * (other.high - p2) * (p1 - one.low) + (p1 - one.low) ** 2) ** 0.5
    return p2 - p1 - low, p2 - p1 + high
