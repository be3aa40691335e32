"""Two sides tried on the same trials, pair by pair, until it is shown which is worse."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import sqrt
from statistics import fmean, median, variance
from typing import NamedTuple

from chaoslab.analysis.measures.anytime import (
    PairCounts,
    compute_change_evidence,
    compute_change_interval,
    count_pairs_needed,
    min_detectable_change,
)
from chaoslab.analysis.measures.intervals import Interval, student_t_quantile
from chaoslab.analysis.verdict.exposure import FaultExposure
from chaoslab.analysis.verdict.standing import OPEN_MAX
from chaoslab.search.pairs import BETTER, FEW, FIGURES, LEAST, OPEN, POWER, SAME, WORSE, Pair

ALPHA = 0.05
AMOUNTS = {"calls": "", "seconds": " s", "tokens": "", "dollars": " USD"}
"""Amount of a trial → its unit."""
PROMPTS_LEAST = 4
"""The fewest prompts, beside one alone, of which it can be said that no difference is shown: the spread of fewer is
hardly known."""
LOOKS = 3
"""The chance of an error by the spread of prompts is divided by this, since it is looked at in every round. It was
chosen by the false alarms of benchmarks/claims.py: most looks are alike, so they are few in effect."""
States = tuple[bool | None, bool | None]
IN_FAVOUR, AGAINST, LEFT_OUT = "in favour of the new side", "against it", "left out"
"""The ways to count an open trial."""


class MovedCost(NamedTuple):
    """A cost of a trial: its median on both sides."""

    amount: str
    base: float
    new: float

    @property
    def unit(self) -> str:
        return AMOUNTS[self.amount]


class Shares(NamedTuple):
    """Pairs that are judged on both sides, those that are not, and the judged ones that hold on each side."""

    judged: int
    open: int
    base: int
    new: int


@dataclass
class ComparedFigure:
    """One figure of a comparison: one of FIGURES over all pairs so far. `alpha`: the chance of a false verdict by it.
    `open_max`: the share of open pairs up to which the others decide.

    The change is the mean over the prompts of the mean change of their pairs. It is shown if the interval excludes 0.
    That is the wider of two: of the pairs, which are independent of each other within a prompt, and of the prompts,
    whose changes spread (Student's t). Open pairs widen it: each counts for one bound as if it were well on the new
    side alone, and for the other as if it were on the base alone."""

    name: str
    alpha: float
    open_max: float = OPEN_MAX
    _prompts: dict[str, Counter[States]] = field(default_factory=dict, init=False, repr=False)
    _all: Counter[States] = field(default_factory=Counter, init=False, repr=False)

    def add(self, states: States, cluster: str) -> None:
        self._all[states] += 1
        self._prompts.setdefault(cluster, Counter())[states] += 1

    @property
    def figure_label(self) -> str:
        return FIGURES[self.name]

    @property
    def has_known_trials(self) -> bool:
        """Something is known of it in a trial. If not, nothing was stated about it, and it is not compared."""
        return any(state is not None for states in self._all for state in states)

    @property
    def shares(self) -> Shares:
        return _compute_side_shares(self._all)

    @property
    def shares_by_prompt(self) -> dict[str, Shares]:
        return {cluster: _compute_side_shares(states) for cluster, states in self._prompts.items()}

    @property
    def has_too_many_open(self) -> bool:
        """More pairs are open than may be beside those that decide."""
        return self.shares.open > self.open_max * self._all.total()

    def count_changed_pairs(self, change: str) -> int:
        """The judged pairs that got worse or better."""
        return self._all[(True, False) if change == WORSE else (False, True)]

    def is_change_shown(self, change: str) -> bool:
        """The change is shown to be worse, or better, whatever the open pairs are."""
        # After any round an e-value passes 2 / alpha with a chance of at most alpha / 2 (Ville), one direction's part.
        if not self.has_known_trials or self.compute_evidence(change) < 2 / self.alpha:
            return False
        spread = self._compute_spread_interval(self._choose_open_mode(change))
        return spread is None or (spread.high < 0 if change == WORSE else spread.low > 0)

    def compute_evidence(self, change: str) -> float:
        """The e-value for worse or better, with the open pairs as they are counted."""
        counts = self._count_pairs_by_weight(self._choose_open_mode(change))
        if change == BETTER:
            # The e-value is one for "worse": the sides are exchanged for "better".
            counts = [
                PairCounts(pair_count.better, pair_count.same, pair_count.worse, pair_count.weight)
                for pair_count in counts
            ]
        return compute_change_evidence(counts)

    @property
    def mean_change(self) -> float | None:
        """The mean over the prompts of the change of their judged pairs; None if none is judged."""
        means = self._compute_prompt_means(LEFT_OUT)
        return fmean(mean for mean, _, _ in means) if means else None

    @property
    def interval(self) -> Interval:
        """The interval of the change, which may be looked at after each round of prompts."""
        ends = []
        for change in (BETTER, WORSE):
            mode = self._choose_open_mode(change)
            bets, spread = (
                compute_change_interval(self._count_pairs_by_weight(mode), self.alpha),
                self._compute_spread_interval(mode),
            )
            ends.append(bets if spread is None else Interval(min(bets.low, spread.low), max(bets.high, spread.high)))
        return Interval(ends[0].low, ends[1].high)

    @property
    def pairs_needed(self) -> int | None:
        """The pairs in which a fall as large as the one seen would be shown with a chance of 0.9, if all prompts
        changed alike; None if none is seen, or a million would not do."""
        judged = self.shares.judged or 1
        worse, better = self.count_changed_pairs(WORSE) / judged, self.count_changed_pairs(BETTER) / judged
        return count_pairs_needed(worse, better, alpha=self.alpha / 2, least=POWER) if worse > better else None

    @property
    def detectable_change(self) -> float | None:
        """The share of the judged pairs that become worse, with none better, that would have been shown with a chance
        of 0.9, if all prompts changed alike."""
        return min_detectable_change(self.shares.judged, alpha=self.alpha / 2, least=POWER)

    def is_worse_unreachable(self, pairs_left: int) -> bool:
        """So many more pairs could not show it to be worse, even if all of them became so."""
        return (
            compute_change_evidence(
                [*self._count_pairs_by_weight(self._choose_open_mode(WORSE)), PairCounts(pairs_left, 0, 0)]
            )
            < 2 / self.alpha
        )

    def _choose_open_mode(self, change: str) -> str:
        """The way to count open pairs where it is asked if this is shown."""
        return LEFT_OUT if not self.has_too_many_open else IN_FAVOUR if change == WORSE else AGAINST

    def _count_pairs_by_weight(self, mode: str) -> list[PairCounts]:
        """The pairs of all prompts, those of one weight together, so that each prompt counts as much as any other."""
        fewest = min((states.total() for states in self._prompts.values()), default=0)
        by_weight: dict[float, list[int]] = {}
        for states in self._prompts.values():
            sums = by_weight.setdefault(fewest / states.total(), [0, 0, 0])
            for value, number in _iterate_changes(states, mode):
                sums[value + 1] += number
        return [PairCounts(worse, same, better, weight) for weight, (worse, same, better) in by_weight.items()]

    def _compute_prompt_means(self, mode: str) -> list[tuple[float, float, int]]:
        """By prompt: mean and variance of the change of its pairs, and their number."""
        rows = []
        for states in self._prompts.values():
            values = [*_iterate_changes(states, mode)]
            if total := sum(number for _, number in values):
                mean = sum(value * number for value, number in values) / total
                square = sum(value * value * number for value, number in values) / total
                rows.append((mean, square - mean * mean, total))
        return rows

    def _compute_spread_interval(self, mode: str) -> Interval | None:
        """The interval of the mean by the spread of the prompts' changes; None for one prompt. The spread of few
        prompts may be small by chance, so it is taken to be at least that which the pairs within them make."""
        if len(self._prompts) < 2:
            return None
        rows = self._compute_prompt_means(mode)
        # Judged pairs of one prompt alone tell nothing of the spread, so no change is excluded.
        if len(rows) < 2:
            return Interval(-1.0, 1.0)
        means = [mean for mean, _, _ in rows]
        within = fmean(square / total for _, square, total in rows)
        half = student_t_quantile(self.alpha / 2 / LOOKS, len(means) - 1) * sqrt(
            max(variance(means), within) / len(means)
        )
        return Interval(max(-1.0, fmean(means) - half), min(1.0, fmean(means) + half))


def _compute_side_shares(states: Counter[States]) -> Shares:
    judged = {state: number for state, number in states.items() if None not in state}
    base, new = (sum(number for state, number in judged.items() if state[side]) for side in (0, 1))
    return Shares(sum(judged.values()), states.total() - sum(judged.values()), base, new)


def _iterate_changes(states: Counter[States], mode: str) -> Iterator[tuple[int, int]]:
    """Each change (−1, 0 or 1) with the number of its pairs."""
    for (base, new), number in states.items():
        if base is not None and new is not None:
            yield new - base, number
        elif mode == IN_FAVOUR:
            yield (True if new is None else new) - (False if base is None else base), number
        elif mode == AGAINST:
            yield (False if new is None else new) - (True if base is None else base), number


@dataclass
class ComparedPairs:
    """All pairs so far. `alpha`: the chance of a false "worse", and of a false "better", of both figures together.
    `open_max`: the share of open pairs up to which the others decide. `round_size`: the pairs of a round, in which each
    prompt is asked; only whole rounds count. `notes`: what else is to be known of it, one line each."""

    alpha: float = ALPHA
    notes: list[str] = field(default_factory=list)
    name: str = ""
    open_max: float = OPEN_MAX
    round_size: int = 1
    pairs: list[Pair] = field(default_factory=list, init=False)
    figures: dict[str, ComparedFigure] = field(init=False)
    exposure: FaultExposure = field(default_factory=FaultExposure, init=False)

    def __post_init__(self) -> None:
        # Each figure has its half of alpha. Of that its two directions have a half each in the interval.
        self.figures = {name: ComparedFigure(name, self.alpha, self.open_max) for name in FIGURES}

    def add(self, pair: Pair) -> None:
        if pair.base.story is not None or pair.new.story is not None:  # which are not kept
            pair = replace(
                pair,
                differs=pair.story_difference,
                base=replace(pair.base, story=None),
                new=replace(pair.new, story=None),
            )
        self.pairs.append(pair)
        for side in (pair.base, pair.new):
            self.exposure.add_trial(met=side.met, held=side.held)
        if len(self.pairs) % self.round_size == 0:
            for round_pair in self.pairs[-self.round_size :]:
                for figure in self.figures.values():
                    figure.add(round_pair.get_values_on_both_sides(figure.name), round_pair.cluster)

    @property
    def stated_figures(self) -> list[ComparedFigure]:
        """The figures of which something is known."""
        return [figure for figure in self.figures.values() if figure.has_known_trials]

    @property
    def prompt_count(self) -> int:
        return len({pair.cluster for pair in self.pairs})

    def count_changed_pairs(self, change: str) -> int:
        """The pairs that changed so."""
        return sum(pair.change_kind == change for pair in self.pairs)

    def compute_evidence(self, change: str) -> float:
        """The most evidence of a figure that it is worse, or better."""
        return max((figure.compute_evidence(change) for figure in self.stated_figures), default=1.0)

    @property
    def figures_too_open(self) -> list[ComparedFigure]:
        """The figures of which more pairs are open than may be. Each trial ended in some way, so that is one also where
        nothing is known of it; if nothing was stated about effects, nothing was asked about what is done."""
        return [
            figure
            for figure in self.figures.values()
            if figure.has_too_many_open and (figure.has_known_trials or figure.name == "well")
        ]

    @property
    def proves_nothing_reason(self) -> str:
        """The reason why all pairs together prove nothing, whatever they are; empty if they may."""
        return self.exposure.no_proof_reason

    @property
    def verdict(self) -> str:
        """worse: a figure is shown to be so. better: one is, and the other is neither worse nor open. Else open, no
        difference shown, or too few."""
        if self.proves_nothing_reason:
            return OPEN
        if any(figure.is_change_shown(WORSE) for figure in self.stated_figures):
            return WORSE
        if any(
            figure.is_change_shown(BETTER) and self.figures_too_open in ([], [figure]) for figure in self.stated_figures
        ):
            return BETTER
        if len(self.pairs) < LEAST or (self.pairs and 1 < self.prompt_count < PROMPTS_LEAST):
            return FEW
        return OPEN if self.figures_too_open or not self.stated_figures else SAME

    @property
    def is_decided(self) -> bool:
        """More pairs would not be looked at: one figure is worse, or all are better."""
        if len(self.pairs) % self.round_size:
            return False
        return any(figure.is_change_shown(WORSE) for figure in self.stated_figures) or (
            bool(self.stated_figures) and all(figure.is_change_shown(BETTER) for figure in self.stated_figures)
        )

    def is_worse_unreachable(self, pairs_left: int) -> bool:
        """So many more pairs could not decide for worse, even if all of them got worse."""
        return all(figure.is_worse_unreachable(pairs_left) for figure in self.stated_figures)

    @property
    def harm_counts(self) -> tuple[int, int]:
        """The pairs with harm on the base, and on the new side."""
        return sum(pair.base.harm for pair in self.pairs), sum(pair.new.harm for pair in self.pairs)

    @property
    def side_counts_by_outcome(self) -> dict[str, tuple[int, int]]:
        """By outcome: the trials of base and new side that ended so. A trial with harm counts as harm."""
        sides = [Counter("harm" if pair.harm else pair.outcome for pair in side)
                 for side in zip(*((pair.base, pair.new) for pair in self.pairs), strict=True)]  # fmt: skip
        return {name: (sides[0][name], sides[1][name]) for name in sorted({*sides[0], *sides[1]})} if sides else {}

    @property
    def costs(self) -> Iterator[MovedCost]:
        """The costs of a trial, over all pairs; an amount that is 0 in all of them is left out. They are medians, since
        a few trials may cost more than all others, and have no interval that could be looked at at any time."""
        for amount in AMOUNTS:
            both = [(getattr(item.base, amount), getattr(item.new, amount)) for item in self.pairs]
            stated = [(before, after) for before, after in both if before is not None and after is not None]
            if any(before or after for before, after in stated):
                yield MovedCost(amount, *(median(item) for item in zip(*stated, strict=True)))


def take_first_changed(pairs: Sequence[Pair], change: str, pairs_max: int) -> tuple[list[Pair], int]:
    """The first pairs that changed so, and the number of the others."""
    changed = [pair for pair in pairs if pair.change_kind == change]
    return changed[:pairs_max], len(changed[pairs_max:])
