"""Intervals for rates, means and censored times.

Sources: Wilson 1927; Clopper and Pearson 1934; Kaplan and Meier 1958 with Greenwood's variance on the log(−log) scale
(Kalbfleisch and Prentice); Brookmeyer and Crowley 1982 for the median of censored times, W. R. Thompson 1936 for that
of others; Student's t by groups, with the sandwich estimator of Liang and Zeger 1986.

*A rate over prompts* has the prompt as its unit: a hundred trials of one prompt say as little of other prompts as one.
Its interval is N. Gaffke's (Three test statistics for a nonparametric one-sided hypothesis on the mean of a nonnegative
variable, 2005): the prompts' shares and one more prompt, at the worst that there is, are weighted by Dirichlet(1, …,
1). That mean is taken as beta with its first two moments; its quantile is interpolated between whole parameters. With
one trial a prompt it is Clopper and Pearson's. It holds for any spread of the shares, and says little of few prompts.

Values of one group, such as the incidents of one trial, may go together. Where groups are given, the variances of
survival curves are multiplied by the *design effect* (Kish 1965): the variance by the sums of the groups over the
variance by the single values. The parts of the restricted mean are its influence function's. It is never below 1, and 1
where each value is a group of its own or all are one.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from itertools import accumulate
from statistics import NormalDist, fmean
from typing import NamedTuple, TypeVar

H = TypeVar("H", bound=Hashable)
CONFIDENCE = 0.95
Z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
"""The deviations from the mean between which CONFIDENCE of all normal values lie."""
ENOUGH = 12
"""The fewest values, or groups of them, whose mean has an interval: the spread of fewer is hardly known."""
FAINT = 50.0
"""A term whose logarithm is less than that of the largest by so much does not change a sum of terms."""


@dataclass(frozen=True)
class Interval:
    """A range from `low` to `high`; a bound is infinite if the data do not limit it."""

    low: float
    high: float

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high


@dataclass(frozen=True)
class Rate:
    """`count` of `total` trials (which is above 0). `prompts`: the number of different prompts that they asked, as far
    as it is known. `interval`: of one prompt, Wilson's for further trials of it; of several, that for trials of other
    prompts like them."""

    count: int
    total: int
    interval: Interval
    prompts: int = 1

    @property
    def value(self) -> float:
        return self.count / self.total


def compute_rate(count: int, total: int) -> Rate | None:
    """The rate of trials of one prompt; None for a total of 0."""
    interval = wilson_interval(count, total)
    return None if interval is None else Rate(count, total, interval)


def compute_flag_rate(flags: Iterable[bool], prompts: Iterable[Hashable]) -> Rate | None:
    """The rate of trials, each with its prompt; None without any."""
    return compute_pooled_rate([*count_by_prompt(flags, prompts).values()])


def count_by_prompt(flags: Iterable[bool], prompts: Iterable[H]) -> dict[H, tuple[int, int]]:
    """By prompt, the trials with the flag and all of them."""
    counts: dict[H, list[int]] = {}
    for flag, prompt in zip(flags, prompts, strict=True):
        counts.setdefault(prompt, [0, 0])[flag] += 1
    return {prompt: (with_it, with_it + without) for prompt, (without, with_it) in counts.items()}


def compute_pooled_rate(shares: Sequence[tuple[int, int]]) -> Rate | None:
    """The rate of trials, with its count and its total for each prompt; None without any."""
    count_sum, total = sum(count for count, _ in shares), sum(trial_count for _, trial_count in shares)
    if len(shares) < 2:
        return compute_rate(count_sum, total)
    tail = (1 - CONFIDENCE) / 2
    low = rate_lower_bound(shares, tail)
    high = 1 - rate_lower_bound([(trial_count - count, trial_count) for count, trial_count in shares], tail)
    return Rate(count_sum, total, Interval(low, high), len(shares))


def rate_lower_bound(shares: Sequence[tuple[int, int]], chance: float) -> float:
    """The one-sided lower bound of a rate, which is missed with this chance at most. `shares`: by prompt, its count and
    its total."""
    if len(shares) == 1:
        return clopper_pearson_low(*shares[0], confidence=1 - 2 * chance)
    # Multiplied so that their mean is the rate of all trials, also where prompts have different numbers of them.
    scale = len(shares) / sum(total for _, total in shares)
    top = max(1.0, *(total * scale for _, total in shares))
    values = [count * scale / top for count, _ in shares]
    atoms = len(values) + 1
    mean = math.fsum(values) / atoms
    spread = (math.fsum(value * value for value in values) / atoms - mean * mean) / (atoms + 1)
    if spread <= 0:  # none of them
        return 0.0
    size = mean * (1 - mean) / spread - 1
    bound = 0.0
    for count_near, count_weight in _weigh_adjacent_integers(mean * size):
        for rest_near, rest_weight in _weigh_adjacent_integers((1 - mean) * size):
            if count_near:
                bound += (
                    count_weight
                    * rest_weight
                    * clopper_pearson_low(count_near, count_near + max(rest_near, 1) - 1, confidence=1 - 2 * chance)
                )
    return min(1.0, top * bound)


def _weigh_adjacent_integers(value: float) -> Iterator[tuple[int, float]]:
    """The whole numbers around a value with their weights, whose mean it is."""
    # A whole number may come out a little below itself.
    below = math.floor(value + 1e-9)
    yield below, 1 - max(0.0, value - below)
    if value - below > 1e-9:
        yield below + 1, value - below


def wilson_interval(count: int, total: int, *, confidence: float = CONFIDENCE) -> Interval | None:
    """Wilson's score interval; None for a total of 0."""
    if total == 0:
        return None
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    share = count / total
    middle = (share + z * z / (2 * total)) / (1 + z * z / total)
    half = z / (1 + z * z / total) * math.sqrt(share * (1 - share) / total + z * z / (4 * total * total))
    # Exact at the ends, where the formula leaves the rest of a rounding.
    return Interval(0.0 if count == 0 else middle - half, 1.0 if count == total else middle + half)


@lru_cache(maxsize=4096)
def clopper_pearson_interval(count: int, total: int, *, confidence: float = CONFIDENCE) -> Interval | None:
    """The exact binomial interval; None for a total of 0."""
    if total == 0:
        return None
    tail = (1 - confidence) / 2
    upper_tail = _BinomialTail(count + 1, total)
    high = 1.0 if count == total else _find_zero(lambda p: tail - (1 - upper_tail(p)))
    return Interval(clopper_pearson_low(count, total, confidence=confidence), high)


def clopper_pearson_low(count: int, total: int, *, confidence: float) -> float:
    """The interval's lower bound alone, for half the time. `total` is above 0."""
    tail, at_least = (1 - confidence) / 2, _BinomialTail(count, total)
    return 0.0 if count == 0 else _find_zero(lambda p: at_least(p) - tail)


def is_chance_plausible(count: int, total: int, chance: float, *, confidence: float) -> bool:
    """True if the chance is within `clopper_pearson_interval`'s interval. Neither tail may be too unlikely; no bound
    need be found for that."""
    tail = (1 - confidence) / 2
    at_most = 1.0 if count == total else 1 - _upper_tail_chance(count + 1, total, chance)
    return _upper_tail_chance(count, total, chance) >= tail and at_most >= tail


def _upper_tail_chance(count: int, total: int, chance: float) -> float:
    """P(X ≥ count) for X ~ Binomial(total, chance)."""
    return _BinomialTail(count, total)(chance)


class _BinomialTail:
    """P(X ≥ count) for X ~ Binomial(total, chance), by the chance, summed over the shorter tail."""

    def __init__(self, count: int, total: int) -> None:
        self._total = total
        self._upper = total - count < count
        self._tail = range(count, total + 1) if self._upper else range(count)
        self._is_certain = count <= 0
        self._ways = cache(partial(_log_binomial_coefficient, total))

    def __call__(self, chance: float) -> float:
        if not 0 < chance < 1:
            return float(chance >= 1 or self._is_certain)
        total, tail, log_p, log_q = self._total, self._tail, math.log(chance), math.log1p(-chance)

        def compute_log_term(k: int) -> float:
            return self._ways(k) + k * log_p + (total - k) * log_q

        if not tail:
            return float(not self._upper)
        # The terms fall on both sides of the largest, so that those which matter end at places found by halves.
        peak = min(max(int((total + 1) * chance), tail[0]), tail[-1])
        log_floor = compute_log_term(peak) - FAINT
        begin = bisect_left(range(tail[0], peak), True, key=lambda k: compute_log_term(k) > log_floor) + tail[0]
        end = bisect_left(range(peak, tail[-1] + 1), True, key=lambda k: compute_log_term(k) <= log_floor) + peak
        share = math.fsum([math.exp(compute_log_term(k)) for k in range(begin, end)])
        return share if self._upper else 1 - share


def _log_binomial_coefficient(total: int, count: int) -> float:
    """The logarithm of the number of ways to choose `count` of `total`."""
    return math.lgamma(total + 1) - math.lgamma(count + 1) - math.lgamma(total - count + 1)


def _find_zero(rising: Callable[[float], float]) -> float:
    """The zero of a rising function on (0, 1)."""
    low, high = 0.0, 1.0
    # Sixty halvings: more than the 53 bits of a float can follow.
    for _ in range(60):
        middle = (low + high) / 2
        if middle in (low, high):
            break  # no number lies between them
        low, high = (middle, high) if rising(middle) < 0 else (low, middle)
    return (low + high) / 2


def compute_design_effect(parts: Sequence[float], groups: Sequence[str]) -> float:
    """The factor by which values that go together within their groups raise the variance of their mean. `parts`: the
    share of each value in the estimate's deviation; `groups`: its group."""
    sums: dict[str, float] = {}
    for deviation, group in zip(parts, groups, strict=True):
        sums[group] = sums.get(group, 0.0) + deviation
    single_variance = math.fsum([deviation * deviation for deviation in parts])
    if len(sums) in (1, len(parts)) or not single_variance:
        return 1.0
    group_variance = math.fsum([total * total for total in sums.values()]) * len(sums) / (len(sums) - 1)
    return max(1.0, group_variance / single_variance)


def mean_interval(values: Sequence[float], groups: Sequence[Hashable] | None = None) -> Interval | None:
    """The interval of the mean, by Student's t; None below ENOUGH values, or groups of them. `groups`: the group of
    each value, which is the unit then."""
    mean = fmean(values) if values else 0.0
    sums: dict[Hashable, float] = {}
    for value, group in zip(values, range(len(values)) if groups is None else groups, strict=True):
        sums[group] = sums.get(group, 0.0) + value - mean
    units = len(sums)
    if units < ENOUGH:
        return None
    square = math.fsum(group_sum * group_sum for group_sum in sums.values()) * units / (units - 1)
    half = student_t_quantile((1 - CONFIDENCE) / 2, units - 1) * math.sqrt(square) / len(values)
    return Interval(max(min(values), mean - half), min(max(values), mean + half))


@lru_cache(1024)
def student_t_quantile(chance: float, freedom: int) -> float:
    """The value that Student's t exceeds with this chance, below 1/2. `freedom`: its degrees."""
    low, high = 0.0, 1.0
    while _student_t_tail(high, freedom) > chance:
        low, high = high, high * 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _student_t_tail(middle, freedom) > chance else (low, middle)
    return high


def _student_t_tail(value: float, freedom: int) -> float:
    """The chance that Student's t exceeds a value from 0 on: the finite sums of Abramowitz and Stegun, 26.7.3 and
    26.7.4."""
    angle = math.atan(value / math.sqrt(freedom))
    square, odd = math.cos(angle) ** 2, freedom % 2
    term = math.cos(angle) if odd else 1.0
    total = 0.0 if freedom == 1 else term
    for k in range(3 if odd else 2, freedom - 1, 2):
        term *= square * (k - 1) / k
        total += term
    inner = (angle + math.sin(angle) * total) * 2 / math.pi if odd else math.sin(angle) * total
    return (1 - inner) / 2


class Spell(NamedTuple):
    """The duration of something. Not `ended`: it lasted at least that long (censored)."""

    duration_s: float
    ended: bool = True


@dataclass(frozen=True)
class CurveStep:
    """A step of the curve: the share that still lasts after `at_s`, its interval, and the number at risk just
    before."""

    at_s: float
    share: float
    interval: Interval
    greenwood: float
    at_risk: int
    ended: int


@dataclass(frozen=True)
class Estimate:
    """A figure and its interval."""

    value: float
    interval: Interval


@dataclass(frozen=True)
class Survival:
    """Kaplan–Meier's curve; `horizon_s` is the longest duration observed, ended or not. `effect`: the design effect,
    which is part of the steps' intervals."""

    steps: tuple[CurveStep, ...]
    horizon_s: float
    effect: float = 1.0

    @property
    def median(self) -> Estimate | None:
        """The first time at which at most half still last; None if that was not observed."""
        at = self._find_time_below_half(lambda step: step.share)
        if at is None:
            return None
        low, high = (
            self._find_time_below_half(lambda step: step.interval.low),
            self._find_time_below_half(lambda step: step.interval.high),
        )
        return Estimate(at, Interval(at if low is None else low, math.inf if high is None else high))

    def _find_time_below_half(self, level: Callable[[CurveStep], float]) -> float | None:
        # The product of shares may come out a little above a half that it is.
        return next((step.at_s for step in self.steps if level(step) <= 0.5 + 1e-12), None)

    @property
    def restricted_mean(self) -> Estimate:
        """The mean duration up to the horizon: the area under the curve, with a normal interval by Greenwood's
        variance."""
        areas, beyond = self._curve_areas
        variance = self.effect * sum(
            area * area * step.ended / (step.at_risk * (step.at_risk - step.ended))
            for area, step in zip(beyond, self.steps, strict=True)
            # Where nobody is left the area beyond is 0, and its term would be 0/0.
            if step.at_risk > step.ended
        )
        mean, half = math.fsum(areas), Z * math.sqrt(variance)
        return Estimate(mean, Interval(max(0.0, mean - half), min(self.horizon_s, mean + half)))

    @property
    def _curve_areas(self) -> tuple[Sequence[float], Sequence[float]]:
        """The area under each level of the curve, and the area beyond each step."""
        starts = [0.0, *(step.at_s for step in self.steps)]
        ends = [*starts[1:], self.horizon_s]
        shares = [1.0, *(step.share for step in self.steps)]
        areas = [share * (end - start) for start, end, share in zip(starts, ends, shares, strict=True)]
        return areas, list(accumulate(reversed(areas)))[-2::-1]

    def compute_spell_influences(self, spells: Sequence[Spell]) -> Sequence[float]:
        """The share of each of the curve's spells in the deviation of the restricted mean: its influence function."""
        _, beyond = self._curve_areas
        times = [step.at_s for step in self.steps]
        contributions = [area / step.at_risk for area, step in zip(beyond, self.steps, strict=True)]
        run = [
            0.0,
            *accumulate(
                contribution * step.ended / step.at_risk
                for contribution, step in zip(contributions, self.steps, strict=True)
            ),
        ]
        deviations = []
        for spell in spells:
            passed = bisect_right(times, spell.duration_s)
            deviations.append(run[passed] - (contributions[passed - 1] if spell.ended else 0.0))
        return deviations


def kaplan_meier(spells: Sequence[Spell], groups: Sequence[str] | None = None) -> Survival | None:
    """The survival curve of the durations. At equal times, ends come before censorings. None without spells. `groups`:
    the group of each spell; the design effect of the restricted mean widens all intervals."""
    if groups is not None and (unadjusted := kaplan_meier(spells)) is not None:
        effect = compute_design_effect(unadjusted.compute_spell_influences(spells), groups)
        steps = [
            replace(step, interval=_log_log_interval(step.share, effect * step.greenwood)) for step in unadjusted.steps
        ]
        return unadjusted if effect == 1 else Survival(tuple(steps), unadjusted.horizon_s, effect)
    if not spells:
        return None
    curve_steps, share, greenwood = [], 1.0, 0.0
    ranked = sorted([spell.duration_s for spell in spells])
    for at_s, ended in sorted(Counter([spell.duration_s for spell in spells if spell.ended]).items()):
        at_risk = len(ranked) - bisect_left(ranked, at_s)
        share *= 1 - ended / at_risk
        greenwood += ended / (at_risk * (at_risk - ended)) if at_risk > ended else math.inf
        curve_steps.append(CurveStep(at_s, share, _log_log_interval(share, greenwood), greenwood, at_risk, ended))
    return Survival(tuple(curve_steps), ranked[-1])


def _log_log_interval(share: float, greenwood: float) -> Interval:
    if share <= 0:
        return Interval(0.0, 0.0)
    spread = Z * math.sqrt(greenwood) / -math.log(share)
    return Interval(share ** math.exp(spread), share ** math.exp(-spread))
