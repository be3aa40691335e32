"""The recoveries of two sides on the same trials: a paired log-rank test, and the difference in the restricted mean.

What never recovers stays at risk to the end, as in `mttr`. Both figures take the incidents of one group, such as a pair
of trials, together, so that neither the pairing nor several incidents of one trial make them too sure.

*Log-rank*: each incident's score in the pooled sample is 1 if it recovered, less the pooled Nelson–Aalen hazard up to
its duration. Under no difference the sums of scores of the two sides of a pair may be exchanged, so the sum of their
differences over its root of the sum of squares is about standard normal: P. C. O'Brien and T. R. Fleming, A paired
Prentice–Wilcoxon test for censored paired data, Biometrics 43(1), 1987, with the scores of the log-rank test.

*Restricted mean*: the area under each side's Kaplan–Meier curve up to the same horizon. The variance of the difference
sums the influence of each incident by group: P. Royston and M. K. B. Parmar, Statistics in Medicine 30, 2011, for the
measure; Liang and Zeger 1986 for the groups.
"""

import math
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from statistics import NormalDist
from typing import NamedTuple

from chaoslab.analysis.measures.intervals import CONFIDENCE, Interval, Spell, kaplan_meier
from chaoslab.analysis.measures.mttr import ENOUGH, spells


class Lasted(NamedTuple):
    """An incident of one side. `censored`: nobody knows how it would have ended. `group`: what goes together."""

    group: str
    duration_s: float
    recovered: bool
    censored: bool = False


@dataclass(frozen=True)
class TwoRecoveries:
    """`n`, `recovered`: the incidents of base and new side, and those that recovered. `mean_s`: the restricted means up
    to `horizon_s`. `interval`: the 95 % interval of new less base. `p`: the two-sided p of the log-rank test, for a
    number of pairs that was fixed beforehand; None if no group differs."""

    n: tuple[int, int]
    recovered: tuple[int, int]
    mean_s: tuple[float, float]
    interval: Interval
    horizon_s: float
    p: float | None


def two_recoveries(base: Sequence[Lasted], new: Sequence[Lasted]) -> TwoRecoveries | None:
    """The comparison; None if one side has fewer than 8 incidents."""
    if min(len(base), len(new)) < ENOUGH:
        return None
    every = spells([*base, *new])
    whole_s, sides = max(map(_length, every)), [every[: len(base)], every[len(base) :]]
    horizon_s = min((last.duration_s for side in sides if not (last := max(side, key=_length)).ended), default=whole_s)
    cut = [[Spell(min(d, horizon_s), ended and d <= horizon_s) for d, ended in side] for side in sides]
    curves = [kaplan_meier(side) for side in cut]
    sums: dict[str, float] = defaultdict(float)
    means = []
    for sign, side, ends, curve in zip((-1, 1), (base, new), cut, curves, strict=True):
        assert curve is not None
        means.append(curve.restricted_mean.value)
        for each, part in zip(side, curve.parts(ends), strict=True):
            sums[each.group] += sign * part
    half = NormalDist().inv_cdf((1 + CONFIDENCE) / 2) * math.sqrt(math.fsum(x * x for x in sums.values()))
    more = means[1] - means[0]
    return TwoRecoveries(
        (len(base), len(new)), (sum(each.recovered for each in base), sum(each.recovered for each in new)),
        (means[0], means[1]), Interval(more - half, more + half), horizon_s, _log_rank(base, new, sides),
    )  # fmt: skip


def _length(spell: Spell) -> float:
    return spell.duration_s


def _log_rank(base: Sequence[Lasted], new: Sequence[Lasted], sides: Sequence[Sequence[Spell]]) -> float | None:
    pooled = sorted(spell.duration_s for side in sides for spell in side)
    ends = sorted(Counter(spell.duration_s for side in sides for spell in side if spell.ended).items())
    at = [when for when, _ in ends]
    hazard = [0.0, *accumulate(ended / (len(pooled) - bisect_left(pooled, when)) for when, ended in ends)]
    sums: dict[str, float] = defaultdict(float)
    for sign, side, ends_of in zip((-1, 1), (base, new), sides, strict=True):
        for each, spell in zip(side, ends_of, strict=True):
            sums[each.group] += sign * (spell.ended - hazard[bisect_right(at, spell.duration_s)])
    spread = math.sqrt(math.fsum(x * x for x in sums.values()))
    if spread < 1e-12:
        return None
    return 2 * NormalDist().cdf(-abs(math.fsum(sums.values())) / spread)
