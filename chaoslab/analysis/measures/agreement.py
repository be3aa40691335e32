"""The agreement of a model with a person's labels: the share, Cohen's kappa, and the table of both. Sources: Cohen
1960; the share's interval is Wilson's, kappa's is the percentile bootstrap."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from chaoslab.analysis.measures.intervals import CONFIDENCE, Estimate, Interval, Rate, Z, rate
from chaoslab.analysis.verdict.opinions import as_if, questions
from chaoslab.base.dice import Dice
from chaoslab.record.history import History
from chaoslab.record.spoken import JudgeReply, Spoken

Pair = tuple[str, str]
"""The outcome by the label, and the one by the model."""
RESAMPLES = 1000


@dataclass(frozen=True)
class Agreement:
    """`pairs`: the outcomes of each labelled question, each with equal labels counted once, since trials with one
    answer are one observation. `labels`: the trials behind them. `without`: labels of questions without a reply."""

    pairs: Sequence[Pair]
    labels: int
    without: int

    @property
    def share(self) -> Rate | None:
        """The share of equal outcomes; None without pairs."""
        return rate(sum(one == other for one, other in self.pairs), len(self.pairs))

    @property
    def kappa(self) -> Estimate | None:
        """Cohen's kappa; None if it is not defined, since both know one outcome alone."""
        value = kappa(self.pairs)
        if value is None:
            return None
        size, uniform = len(self.pairs), Dice(0, "kappa", len(self.pairs)).stream().random
        drawn = (kappa([self.pairs[int(uniform() * size)] for _ in self.pairs]) for _ in range(RESAMPLES))
        found = sorted(1.0 if each is None else each for each in drawn)  # where it is not defined, all are equal
        cut = round(RESAMPLES * (1 - CONFIDENCE) / 2)
        return Estimate(value, Interval(found[cut], found[-cut - 1]))

    @property
    def table(self) -> Mapping[Pair, int]:
        """The number of pairs of each kind."""
        return Counter(self.pairs)

    def above(self, certain_above: float) -> bool:
        """True if the lower bound of the share is above this."""
        return self.share is not None and self.share.interval.low > certain_above


def kappa(pairs: Sequence[Pair]) -> float | None:
    """Cohen's kappa: the agreement beyond chance. None if chance alone makes all agree, or without pairs."""
    size = len(pairs)
    rows, columns = Counter(one for one, _ in pairs), Counter(other for _, other in pairs)
    by_chance = sum(rows[name] * columns[name] for name in rows)
    if by_chance == size * size:
        return None
    agreed = sum(one == other for one, other in pairs)
    return (agreed * size - by_chance) / (size * size - by_chance)


def least(certain_above: float) -> int:
    """The least number of pairs, all equal, whose lower bound is above this share, which is below 1."""
    return 1 + math.floor(Z * Z * certain_above / (1 - certain_above))  # n / (n + z²) is Wilson's bound for n of n


def agreement(history: History, labels: Spoken, replies: Mapping[str, JudgeReply]) -> Agreement:
    """The agreement of the replies with the labels of a run, over the trials that words would decide. Labels that
    disagree do not count."""
    asked = questions(history)
    by_person, by_model = as_if(history, Spoken(labels.labels)), as_if(history, Spoken(opinions=replies))
    labelled = [trial for trial in asked if trial in labels.labels and trial not in labels.disputed]
    there = [trial for trial in labelled if (reply := replies.get(asked[trial].key)) is not None and not reply.error]
    pairs = {
        (asked[trial].key, labels.labels[trial]): (str(by_person[trial].outcome), str(by_model[trial].outcome))
        for trial in there
    }
    return Agreement(list(pairs.values()), len(there), len(labelled) - len(there))
