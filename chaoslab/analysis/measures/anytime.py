"""Pairs of trials, one of each of two sides: did the share of bad ones change? The evidence may be looked at after
every pair, or after every round of prompts, and so may the interval of the mean change. The power is the evidence's.

*Power* is that of the e-process of `compute_e_value`, exact: the chance that it has reached 1 / alpha by so many pairs,
a share of which are worse and a share better, independent of each other.

*The confidence sequence* is that of betting: I. Waudby-Smith and A. Ramdas, Estimating means of bounded random
variables by betting, Journal of the Royal Statistical Society B 86(1), 2024.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from math import exp, log
from typing import NamedTuple

from chaoslab.analysis.measures.intervals import Interval

SHARES = [percent / 100 for percent in range(60, 91)]
"""The shares of worse ones among discordant pairs that the evidence looks for. They were chosen by the power at the
changes of benchmarks/claims.py: with 0.5 to 1, a drop from .95 to .90 is shown less often by 0.05."""
_RATIOS = [(log(2 * share), log(2 * (1 - share))) for share in SHARES]
EVIDENCE_MAX = 1e300
"""The largest evidence that is told."""
_LOG_MAX = log(EVIDENCE_MAX)


@lru_cache(65536)  # looked at after each pair, most of which change nothing
def compute_e_value(worse: int, better: int) -> float:
    """The evidence of these discordant pairs, in any order, that the new side is worse: an e-value, which may be looked
    at after every pair. Where the new side is not worse, it ever reaches 1 / alpha with a chance of alpha at most.

    It is the likelihood ratio of θ to 1/2, averaged over the θ in `SHARES`, where θ is the chance that a discordant
    pair is worse. Each ratio is a supermartingale wherever θ is 1/2 or less, hence so is their mean (Ville's
    inequality; A. Ramdas et al., Game-theoretic statistics and safe anytime-valid inference, Statistical Science 38(4),
    2023).
    """
    logs = [worse * if_worse + better * if_better for if_worse, if_better in _RATIOS]
    # exp overflows beyond 709.
    return min(EVIDENCE_MAX, sum(map(exp, (min(log_ratio, _LOG_MAX) for log_ratio in logs))) / len(logs))


class PairCounts(NamedTuple):
    """The pairs by change: the new side is worse, alike or better. `weight`: of each of them in the mean, 0 to 1."""

    worse: int
    same: int
    better: int
    weight: float = 1.0


def compute_change_evidence(counts: Sequence[PairCounts], mean: float = 0.0) -> float:
    """The evidence that the mean change is below `mean`, from above −1 to below 1, as an e-value at the end of a round.

    The pairs come in rounds that have each prompt equally often, or as often as its weight makes up for, and are
    independent of each other. Changes are −1, 0 and 1, and the mean is that over the prompts. The evidence is the gain
    of bets that each change is below the mean, averaged over stakes: for one prompt and a mean of 0 it is
    `compute_e_value`. A
    stake is the same for the whole round, so the gain of a round is at most 1 on the average wherever the mean change
    of its prompts is not below `mean`, however they differ: a product is at most the power of the mean of its factors.
    """
    if not mean and len(counts) == 1 and counts[0].weight == 1:
        return compute_e_value(counts[0].worse, counts[0].better)
    logs = []
    for share in SHARES:
        stake, total = (2 * share - 1) / (1 - mean), 0.0
        for worse, same, better, weight in counts:
            bet = stake * weight
            total += worse * log(1 + bet * (mean + 1)) + better * log(1 + bet * (mean - 1))
            total += same * log(1 + bet * mean) if mean else 0.0
        logs.append(total)
    return min(EVIDENCE_MAX, sum(map(exp, (min(log_gain, _LOG_MAX) for log_gain in logs))) / len(logs))


def compute_change_interval(counts: Sequence[PairCounts], alpha: float) -> Interval:
    """The confidence sequence of the mean change: an interval that may be looked at after each round. It holds at all
    looks but for a chance of alpha, half of it on each side, and excludes 0 where `compute_change_evidence` decides."""
    low, high = -1.0, 1.0
    mirrored = [
        PairCounts(pair_count.better, pair_count.same, pair_count.worse, pair_count.weight) for pair_count in counts
    ]
    return Interval(-_find_upper_bound(mirrored, alpha / 2, low, high), _find_upper_bound(counts, alpha / 2, low, high))


def _find_upper_bound(counts: Sequence[PairCounts], alpha: float, low: float, high: float) -> float:
    for _ in range(20):
        middle = (low + high) / 2
        # Twenty halvings of an interval from -1 to 1 leave an error of 2 ** -19.
        low, high = (low, middle) if compute_change_evidence(counts, middle) >= 1 / alpha else (middle, high)
    return high


DISCORDANT_MAX = 600
"""The most discordant pairs for which the power is reckoned."""
PAIRS_MAX = 1_000_000


@lru_cache(16)
def list_min_worse_counts(alpha: float, discordant_max: int = DISCORDANT_MAX) -> tuple[int, ...]:
    """By the number of discordant pairs, from 0 to `discordant_max`, how many of them must be worse to decide; more
    than there
    are if none do. It rises by 0 or 1 from one number to the next, as the evidence rises with each that is worse and
    falls with each that is better."""
    bounds = [1]
    for discordant in range(1, discordant_max + 1):
        worse = bounds[-1]
        undecided = worse > discordant or compute_e_value(worse, discordant - worse) < 1 / alpha
        bounds.append(worse + undecided)
    return tuple(bounds)


@lru_cache(256)
def _compute_decision_chances(share: float, alpha: float) -> tuple[float, ...]:
    """By the number of discordant pairs, the chance that "worse" was decided by then. `share`: the chance that one of
    them is worse."""
    bound, chances, open_chances, total = list_min_worse_counts(alpha), [0.0], [1.0], 0.0
    for discordant in range(1, DISCORDANT_MAX + 1):
        after = [0.0] * (len(open_chances) + 1)
        for worse, chance in enumerate(open_chances):
            after[worse] += chance * (1 - share)
            after[worse + 1] += chance * share
        cut = bound[discordant]
        total += math.fsum(after[cut:])
        open_chances = after[:cut]
        chances.append(min(1.0, total))
    return tuple(chances)


def compute_power(worse: float, better: float, pairs: int, *, alpha: float) -> float:
    """The chance that "worse" is decided within so many pairs. `worse`, `better`: the shares of pairs that are."""
    discordant_share = worse + better
    if discordant_share <= 0 or pairs <= 0:
        return 0.0
    # Rounded, so that the cache knows shares that differ in their last digits alone.
    decision_chances = _compute_decision_chances(round(worse / discordant_share, 6), alpha)
    if discordant_share >= 1:
        return decision_chances[min(pairs, DISCORDANT_MAX)]
    # In logarithms, since the binomial coefficients of a million pairs are beyond any float.
    log_p, log_q, log_factorial = math.log(discordant_share), math.log1p(-discordant_share), math.lgamma(pairs + 1)
    chances = [
        math.exp(log_factorial - math.lgamma(k + 1) - math.lgamma(pairs - k + 1) + k * log_p + (pairs - k) * log_q)
        for k in range(min(pairs, DISCORDANT_MAX) + 1)
    ]
    # More discordant pairs than are reckoned decide at least as often as the most of those.
    beyond = max(0.0, 1 - math.fsum(chances)) * decision_chances[-1]
    return min(1.0, math.fsum(map(float.__mul__, chances, decision_chances)) + beyond)


def count_pairs_needed(worse: float, better: float, *, alpha: float, least: float) -> int | None:
    """The fewest pairs with this power; None if there are none up to a million."""
    if compute_power(worse, better, PAIRS_MAX, alpha=alpha) < least:
        return None
    low, high = 0, 1
    # Doubled first, since the number may be anything up to a million.
    while compute_power(worse, better, high, alpha=alpha) < least:
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if compute_power(worse, better, middle, alpha=alpha) >= least else (middle, high)
    return high


def min_detectable_change(pairs: int, *, alpha: float, least: float) -> float | None:
    """The smallest share of pairs that become worse, while none becomes better, that is shown within so many pairs with
    this power; None if none is."""
    if compute_power(1.0, 0.0, pairs, alpha=alpha) < least:
        return None
    low, high = 0.0, 1.0
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (low, middle) if compute_power(middle, 0.0, pairs, alpha=alpha) >= least else (middle, high)
    return high
