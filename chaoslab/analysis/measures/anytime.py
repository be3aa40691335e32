"""Pairs of trials, one of each of two sides: did the share of bad ones change? And figures of a test that may be looked
at after every pair: its power, and a confidence sequence for a mean.

McNemar 1947, in its exact form: under no change each discordant pair (bad in one run alone) is worse or better
with probability 1/2, so the two-sided p is twice the smaller binomial tail, at most 1. Concordant pairs say nothing.

*Power* is that of the e-process of `e_value`, exact: the chance that it has reached 1 / alpha by so many pairs,
a share of which are worse and a share better, independent of each other.

*The confidence sequence* is the asymptotic one of I. Waudby-Smith, D. Arbour, R. Sinha, E. H. Kennedy and A. Ramdas,
Time-uniform central limit theory and asymptotic confidence sequences, Annals of Statistics 52(6), 2024, Theorem 2.2.
It assumes independent values with more than two finite moments, and is approximate: its chance of ever missing the
mean, from a first look on, tends to alpha as that first look is later. It is therefore not told below `FIRST` values,
nor before `OTHERS` of them differ from the most frequent one (benchmarks/compare.py has what it misses).
"""

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from math import comb, exp, log
from statistics import fmean, pstdev

from chaoslab.analysis.measures.intervals import Interval, wilson

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


FIRST, OTHERS = 60, 20
"""The fewest values for a confidence sequence, and of these the fewest other than the most frequent one."""
TIGHTEST = 100
"""The number of values at which a confidence sequence is at its narrowest."""
DISCORDANT_MAX = 600
"""The most discordant pairs for which the power is reckoned."""
PAIRS_MAX = 1_000_000


@lru_cache(16)
def decides(alpha: float, most: int = DISCORDANT_MAX) -> tuple[int, ...]:
    """By the number of discordant pairs, from 0 to `most`, how many of them must be worse to decide; more than there
    are if none do. It rises by 0 or 1 from one number to the next, as the evidence rises with each that is worse and
    falls with each that is better."""
    found = [1]
    for discordant in range(1, most + 1):
        worse = found[-1]
        undecided = worse > discordant or e_value(worse, discordant - worse) < 1 / alpha
        found.append(worse + undecided)
    return tuple(found)


@lru_cache(16)
def fewest(alpha: float) -> int:
    """The fewest discordant pairs that can decide."""
    return next(number for number, worse in enumerate(decides(alpha)) if number and worse <= number)


@lru_cache(256)
def _decided(share: float, alpha: float) -> tuple[float, ...]:
    """By the number of discordant pairs, the chance that "worse" was decided by then. `share`: the chance that one of
    them is worse."""
    bound, found, going, total = decides(alpha), [0.0], [1.0], 0.0
    for discordant in range(1, DISCORDANT_MAX + 1):
        after = [0.0] * (len(going) + 1)
        for worse, chance in enumerate(going):
            after[worse] += chance * (1 - share)
            after[worse + 1] += chance * share
        cut = bound[discordant]
        total += math.fsum(after[cut:])
        going = after[:cut]
        found.append(min(1.0, total))
    return tuple(found)


def power(worse: float, better: float, pairs: int, *, alpha: float) -> float:
    """The chance that "worse" is decided within so many pairs. `worse`, `better`: the shares of pairs that are."""
    both = worse + better
    if both <= 0 or pairs <= 0:
        return 0.0
    decided = _decided(round(worse / both, 6), alpha)
    if both >= 1:
        return decided[min(pairs, DISCORDANT_MAX)]
    log_p, log_q, whole = math.log(both), math.log1p(-both), math.lgamma(pairs + 1)
    chances = [
        math.exp(whole - math.lgamma(k + 1) - math.lgamma(pairs - k + 1) + k * log_p + (pairs - k) * log_q)
        for k in range(min(pairs, DISCORDANT_MAX) + 1)
    ]
    beyond = max(0.0, 1 - math.fsum(chances)) * decided[-1]
    return min(1.0, math.fsum(map(float.__mul__, chances, decided)) + beyond)


def pairs_needed(worse: float, better: float, *, alpha: float, least: float) -> int | None:
    """The fewest pairs with this power; None if there are none up to a million."""
    if power(worse, better, PAIRS_MAX, alpha=alpha) < least:
        return None
    low, high = 0, 1
    while power(worse, better, high, alpha=alpha) < least:
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if power(worse, better, middle, alpha=alpha) >= least else (middle, high)
    return high


def detectable(pairs: int, *, alpha: float, least: float) -> float | None:
    """The smallest share of pairs that become worse, while none becomes better, that is shown within so many pairs with
    this power; None if none is."""
    if power(1.0, 0.0, pairs, alpha=alpha) < least:
        return None
    low, high = 0.0, 1.0
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (low, middle) if power(middle, 0.0, pairs, alpha=alpha) >= least else (middle, high)
    return high


def mean_sequence(values: Sequence[float], *, alpha: float) -> Interval | None:
    """The confidence sequence for the mean at this number of values; None if they are too few, or too many are
    equal."""
    n = len(values)
    if n < FIRST or n - Counter(values).most_common(1)[0][1] < OTHERS:
        return None
    deviation = pstdev(values)
    narrow = -2 * math.log(alpha)
    tuned = (narrow + math.log(narrow + 1)) / TIGHTEST * n + 1
    half = deviation * math.sqrt(2 * tuned / (n * (tuned - 1)) * math.log(math.sqrt(tuned) / alpha))
    mean = fmean(values)
    return Interval(mean - half, mean + half)
