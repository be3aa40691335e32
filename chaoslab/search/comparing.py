"""Two sides tried on the same trials, pair by pair, until it is shown which is worse."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import comb, fsum
from statistics import fmean

from chaoslab.analysis.measures.anytime import (
    detectable,
    difference,
    e_value,
    fewest,
    mcnemar,
    mean_sequence,
    pairs_needed,
    power,
)
from chaoslab.analysis.measures.intervals import CONFIDENCE, Interval
from chaoslab.base.dice import Dice
from chaoslab.search.pairs import BETTER, FEW, LEAST, POWER, SAME, WORSE, Pair

ALPHA = 0.05
RESAMPLES = 500
K_MAX, AS_MANY = 8, 4
"""The largest k of pass^k, and the trials of a prompt for each of the k: with fewer the figure would jump."""
AMOUNTS = {"calls": "", "seconds": " s", "tokens": "", "dollars": " USD", "quality": ""}
"""Amount of a trial → its unit."""


@dataclass(frozen=True)
class MovedCost:
    """A cost of a trial: its means on both sides, and the confidence sequence of the mean difference; None below 60
    pairs, or if too many differ alike."""

    amount: str
    base: float
    new: float
    interval: Interval | None

    @property
    def unit(self) -> str:
        return AMOUNTS[self.amount]


@dataclass(frozen=True)
class PassAll:
    """pass^k of both sides, with the 95 % interval of the change."""

    k: int
    base: float
    new: float
    interval: Interval


class _Count:
    """Discordant pairs by change: all, and the first of each cluster."""

    def __init__(self) -> None:
        self.all, self.first, self._seen = Counter[str](), Counter[str](), set[str]()

    def add(self, change: str, cluster: str) -> None:
        self.all[change] += 1
        if cluster not in self._seen:
            self._seen.add(cluster)
            self.first[change] += 1


@dataclass
class Figures:
    """All pairs so far. Where several prompts are asked, the evidence is that of each prompt's first
    discordant pair alone, since what differs at a prompt may differ at each repetition of it. `notes`: what else is to
    be known of it, one line each."""

    alpha: float = ALPHA
    notes: list[str] = field(default_factory=list)
    name: str = ""
    pairs: list[Pair] = field(default_factory=list, init=False)
    judged: list[Pair] = field(default_factory=list, init=False)
    clusters: dict[str, None] = field(default_factory=dict, init=False)
    _well: _Count = field(default_factory=_Count, init=False, repr=False)
    _harm: _Count = field(default_factory=_Count, init=False, repr=False)

    def add(self, pair: Pair) -> None:
        if pair.base.story is not None or pair.new.story is not None:  # which are not kept
            pair = replace(
                pair, differs=pair.difference, base=replace(pair.base, story=None), new=replace(pair.new, story=None)
            )
        self.pairs.append(pair)
        self.clusters[pair.cluster] = None
        if pair.judged:
            self.judged.append(pair)
        for count, change in ((self._well, pair.change), (self._harm, pair.harm)):
            if change:
                count.add(change, pair.cluster)

    def count(self, change: str, *, counted: bool = False) -> int:
        """The pairs that changed so. `counted`: those that are evidence."""
        return (self._well.first if counted and self.several else self._well.all)[change]

    @property
    def several(self) -> bool:
        """Several prompts are asked."""
        return len(self.clusters) > 1

    @property
    def units(self) -> int:
        """The independent units that are judged: pairs, or prompts if there are several."""
        return len({each.cluster for each in self.judged}) if self.several else len(self.judged)

    @property
    def evidence(self) -> tuple[float, float]:
        """The e-values for worse and for better."""
        worse, better = self.count(WORSE, counted=True), self.count(BETTER, counted=True)
        return e_value(worse, better), e_value(better, worse)

    @property
    def harm_evidence(self) -> tuple[float, float]:
        """The same for more harm and for less."""
        found = self._harm.first if self.several else self._harm.all
        return e_value(found[WORSE], found[BETTER]), e_value(found[BETTER], found[WORSE])

    @property
    def verdict(self) -> str:
        """worse, better, no difference shown, or too few."""
        worse, better = self.evidence
        if max(worse, better) >= 1 / self.alpha:
            return WORSE if worse > better else BETTER
        enough = len(self.judged) >= LEAST and (not self.several or self.units >= fewest(self.alpha))
        return SAME if enough else FEW

    @property
    def decided(self) -> bool:
        """More pairs would not be looked at."""
        return self.verdict in (WORSE, BETTER)

    def hopeless(self, left: int) -> bool:
        """So many more pairs could not decide for worse, even if all of them became worse."""
        worse, better = self.count(WORSE, counted=True), self.count(BETTER, counted=True)
        return e_value(worse + left, better) < 1 / self.alpha

    @property
    def p(self) -> float | None:
        """McNemar's exact p over all discordant pairs, for a number of pairs that was fixed beforehand. It takes the
        pairs of one prompt as independent."""
        return mcnemar(self.count(WORSE), self.count(BETTER))

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval of the change in the share that is well."""
        base, new = self.well
        judged = len(self.judged)
        return difference(base, new, self.count(WORSE), self.count(BETTER), judged) if judged else None

    @property
    def well(self) -> tuple[int, int]:
        """The judged pairs that are well on the base, and on the new side."""
        return _well(self.judged)

    @property
    def harmed(self) -> tuple[int, int]:
        """The pairs with harm on the base, and on the new side."""
        return sum(each.base.harm for each in self.pairs), sum(each.new.harm for each in self.pairs)

    @property
    def shares(self) -> tuple[float, float]:
        """The shares of the units that are evidence for worse and for better."""
        units = self.units or 1
        return self.count(WORSE, counted=True) / units, self.count(BETTER, counted=True) / units

    @property
    def power(self) -> float | None:
        """The chance that a change as large as the one seen is shown within so many pairs; None if none is seen."""
        worse, better = sorted(self.shares, reverse=True)
        return power(worse, better, self.units, alpha=self.alpha) if worse > better else None

    @property
    def needed(self) -> int | None:
        """The pairs (or prompts, if there are several) in which a change as large as the one seen would be shown with
        a chance of 0.9; None if none is seen, or a million would not do."""
        worse, better = sorted(self.shares, reverse=True)
        return pairs_needed(worse, better, alpha=self.alpha, least=POWER)

    @property
    def detectable(self) -> float | None:
        """The share of pairs that become worse, with none better, that would have been shown with a chance of 0.9."""
        return detectable(self.units, alpha=self.alpha, least=POWER)

    @property
    def by_prompt(self) -> dict[str, tuple[int, int, int]]:
        """By prompt: its judged pairs, and those well on the base and on the new side."""
        found: dict[str, list[Pair]] = {cluster: [] for cluster in self.clusters}
        for each in self.judged:
            found[each.cluster].append(each)
        return {cluster: (len(pairs), *_well(pairs)) for cluster, pairs in found.items()}

    @property
    def outcomes(self) -> dict[str, tuple[int, int]]:
        """By outcome: the trials of base and new side that ended so. A trial with harm counts as harm."""
        sides = [Counter("harm" if each.harm else each.outcome for each in side)
                 for side in zip(*((each.base, each.new) for each in self.pairs), strict=True)]  # fmt: skip
        return {name: (sides[0][name], sides[1][name]) for name in sorted({*sides[0], *sides[1]})} if sides else {}

    @property
    def costs(self) -> Iterator[MovedCost]:
        """The costs of a trial, over the judged pairs; an amount that is 0 in all of them is left out. Where several
        prompts are asked, the interval is over the means of the prompts."""
        for amount in AMOUNTS:
            both = [(each.cluster, getattr(each.base, amount), getattr(each.new, amount)) for each in self.judged]
            known = [(cluster, one, other) for cluster, one, other in both if one is not None and other is not None]
            if not any(one or other for _, one, other in known):
                continue
            by_cluster: dict[str, list[float]] = defaultdict(list)
            for cluster, one, other in known:
                by_cluster[cluster].append(other - one)
            values = [fmean(each) for each in by_cluster.values()] if self.several else by_cluster[known[0][0]]
            yield MovedCost(
                amount, fmean(one for _, one, _ in known), fmean(other for _, _, other in known),
                mean_sequence(values, alpha=self.alpha),
            )  # fmt: skip

    @property
    def pass_all(self) -> PassAll | None:
        """pass^k for the largest k up to 8 that each prompt has four times as many trials of; None below 2. Its
        interval is a bootstrap over the prompts, or over the pairs if there is one prompt."""
        rows = [each for each in self.by_prompt.values() if each[0]]
        k = min([K_MAX, *(each[0] // AS_MANY for each in rows)])
        if not rows or k < 2:
            return None
        one, other = (fmean(comb(row[side], k) / comb(row[0], k) for row in rows) for side in (1, 2))
        draw = Dice(0, "pass^k", len(self.judged)).stream().random
        if len(rows) > 1:
            parts = [(comb(new, k) - comb(base, k)) / comb(n, k) for n, base, new in rows]
            means = [fsum(parts[int(draw() * len(parts))] for _ in parts) / len(parts) for _ in range(RESAMPLES)]
        else:
            pairs, n = [(bool(each.base.well), bool(each.new.well)) for each in self.judged], rows[0][0]
            means = []
            for _ in range(RESAMPLES):
                drawn = [pairs[int(draw() * n)] for _ in range(n)]
                base, new = (sum(each[side] for each in drawn) for side in (0, 1))
                means.append((comb(new, k) - comb(base, k)) / comb(n, k))
        cut = round(RESAMPLES * (1 - CONFIDENCE) / 2)
        ranked = sorted(means)
        return PassAll(k, one, other, Interval(ranked[cut], ranked[-cut - 1]))


def _well(pairs: Sequence[Pair]) -> tuple[int, int]:
    return sum(bool(each.base.well) for each in pairs), sum(bool(each.new.well) for each in pairs)
