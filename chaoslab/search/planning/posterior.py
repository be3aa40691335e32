"""The chance that a cell's next trial ends badly, or with harm: a Beta posterior whose prior is learnt level by level.

The mean of the prior begins with what is known of the fault (`knowledge`: a chance, and the trials that it is worth).
Each level of evidence moves it, from far to near:

1. the same fault, of the same kind, at targets of the same sort (that change something, or that do not), of all other
   subjects: m ← (WORTH·m + bad) / (WORTH + trials), where trials count at most MOST;
2. the subject as a whole, then the target: how often trials ended badly there, beside what step 1 expected of the same
   trials. The odds are multiplied by (bad + FRAIL) / (expected + FRAIL);
3. the siblings, which are the same fault at the subject's other targets of that sort: as in 1;
4. the same fault at the same target, of another kind or dose: as in 1, with CLOSE, since it mostly ends alike.

Then the cell's own trials count in full: Beta(STRENGTH·m + bad, STRENGTH·(1 − m) + trials − bad). A cell that was never
tried has the widest posterior.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from math import prod, sqrt
from statistics import fmean

from chaoslab.base.dice import Dice
from chaoslab.search.planning import hooks
from chaoslab.search.planning.cells import Cell
from chaoslab.search.planning.evidence import BAD, HARM, Count, Evidence
from chaoslab.search.variation import GOOD

WORTH, CLOSE, MOST, FRAIL, STRENGTH = 2.0, 0.5, 40.0, 3.0, 1.0
FEWEST = 8
"""The judged trials below which a prediction is called too little data."""
ENOUGH = 4.0
"""The trials that the outcomes seen elsewhere count as, beside a subject's own."""
SURE = 0.005
"""The chance is kept so far from 0 and 1."""


@dataclass(frozen=True)
class Beta:
    """The posterior of a chance. `own`: the trials of the cell itself; `worth`: those that its prior rests on."""

    a: float
    b: float
    own: float = 0.0
    worth: float = 1.0

    @property
    def mean(self) -> float:
        return self.a / (self.a + self.b)

    @property
    def deviation(self) -> float:
        total = self.a + self.b
        return sqrt(self.a * self.b / (total * total * (total + 1)))

    @property
    def gain(self) -> float:
        """The variance that one more trial takes away, in the mean: a·b / ((a+b)²·(a+b+1)²)."""
        total = self.a + self.b
        return self.a * self.b / (total * total * (total + 1) ** 2)

    def sample(self, dice: Dice) -> float:
        """A draw of the mean, as certain as all trials that it rests on make it. Equal dice draw the same."""
        trials = self.own + self.worth
        return dice.stream().betavariate(trials * self.mean, trials * (1 - self.mean))


NONE = Count()


class Posteriors:
    """The posteriors of the cells of one subject, by all evidence."""

    def __init__(self, evidence: Evidence, subject: str) -> None:
        self.evidence, self.subject = evidence, subject
        self._knowledge = [*hooks.all_of("knowledge")]
        self.factors = [*hooks.all_of("risk_factors")]
        self._elsewhere: dict[tuple[tuple[str, str, bool], str], tuple[float, float]] = {}

    def of(self, cell: Cell, what: str = BAD) -> Beta:
        """The posterior of a cell. `what`: BAD, or HARM."""
        evidence, place = self.evidence, (self.subject, cell.fault, cell.target)
        own = evidence.cells.get((self.subject, cell.key), NONE)
        sort = (cell.fault, cell.how, evidence.changes(self.subject, cell.target))
        mean, worth = self._far(sort, what)
        odds = mean / (1 - mean) * self._frailty(what, "") * self._frailty(what, cell.target)
        mean = odds / (1 + odds)
        siblings, others = evidence.of_subject.get((self.subject, *sort), NONE), evidence.places.get(place, NONE)
        for seen, own_worth in ((_less(siblings, own), WORTH), (_less(others, own), CLOSE)):
            mean, worth = _moved(mean, seen, what, own_worth), worth + seen.weight
        mean, bad = _kept(mean), own.of(what)
        return Beta(STRENGTH * mean + bad, STRENGTH * (1 - mean) + max(0.0, own.weight - bad), own.weight, worth)

    def siblings(self, cell: Cell) -> list[tuple[str, Count]]:
        """The same fault at other targets of this subject: what came of it, the worst first."""
        own = self.evidence.places
        found = [
            (target, count) for (subject, fault, target), count in own.items()
            if (subject, fault) == (self.subject, cell.fault) and target != cell.target and count.weight
        ]  # fmt: skip
        return sorted(found, key=lambda each: (-each[1].bad / each[1].weight, each[0]))

    def at_other_targets(self, cell: Cell) -> Count:
        """The same fault, of the same kind, at targets of the same sort, of other subjects."""
        sort = (cell.fault, cell.how, self.evidence.changes(self.subject, cell.target))
        return _less(self.evidence.faults.get(sort, NONE), self.evidence.of_subject.get((self.subject, *sort), NONE))

    def _far(self, sort: tuple[str, str, bool], what: str) -> tuple[float, float]:
        """Step 1: the mean, and the trials that it rests on."""
        if (sort, what) not in self._elsewhere:
            mean, worth = self._known(*sort, what)
            own = self.evidence.of_subject.get((self.subject, *sort), NONE)
            seen = _less(self.evidence.faults.get(sort, NONE), own)
            self._elsewhere[sort, what] = _kept(_moved(mean, seen, what, worth)), worth + min(MOST, seen.weight)
        return self._elsewhere[sort, what]

    def _known(self, fault: str, how: str, changes: bool, what: str) -> tuple[float, float]:
        for name, each in self._knowledge:
            found = hooks.ask_plugin("knowledge", name, partial(each.prior, fault, how=how, changes=changes, what=what))
            if found is not None:
                chance, worth = found
                return _kept(float(chance)), max(0.1, float(worth))
        return 0.2, WORTH

    def _frailty(self, what: str, target: str) -> float:
        """Step 2: the factor on the odds, of the subject or of one target."""
        seen, expected = self._beside.get((what, target), (0.0, 0.0))
        return (seen + FRAIL) / (expected + FRAIL)

    @cached_property
    def _beside(self) -> dict[tuple[str, str], tuple[float, float]]:
        """The bad trials and the expected ones, of the subject (under "") and by target."""
        found: dict[tuple[str, str], tuple[float, float]] = defaultdict(lambda: (0.0, 0.0))
        for each in self.evidence.by_subject.get(self.subject, ()):
            if each.cell is None:
                continue
            sort = (each.cell.fault, each.cell.how, self.evidence.changes(self.subject, each.cell.target))
            for what, bad in ((BAD, each.blame), (HARM, each.harm_blame)):
                expected = self._far(sort, what)[0] * each.weight
                for target in ("", each.cell.target):
                    before = found[what, target]
                    found[what, target] = before[0] + bad, before[1] + expected
        whole = {what: (found[what, ""][0] + FRAIL) / (found[what, ""][1] + FRAIL) for what in (BAD, HARM)}
        # A target is set beside its subject, not beside the world: else what is bad at one counts twice.
        return {
            (what, target): (seen, expected * (whole[what] if target else 1.0))
            for (what, target), (seen, expected) in found.items()
        }


def _kept(chance: float) -> float:
    return min(1 - SURE, max(SURE, chance))


def _less(count: Count, other: Count) -> Count:
    if not other.weight or not count.weight:
        return count
    return Count(
        max(0.0, count.weight - other.weight), max(0.0, count.bad - other.bad), max(0.0, count.harm - other.harm)
    )


def _moved(mean: float, seen: Count, what: str, worth: float = WORTH) -> float:
    counted = min(1.0, MOST / seen.weight) if seen.weight else 0.0
    return (worth * mean + seen.of(what) * counted) / (worth + seen.weight * counted)


# Prediction.


@dataclass(frozen=True)
class Prediction:
    """The chance of each outcome of a trial. `trials`: those that it rests on; `enough`: they are FEWEST or more."""

    chances: Mapping[str, float]
    trials: int

    @property
    def enough(self) -> bool:
        return self.trials >= FEWEST

    def __str__(self) -> str:
        if not self.enough:
            return f"too little data: {self.trials} judged trials, and {FEWEST} are needed"
        said = sorted(self.chances.items(), key=lambda each: -each[1])
        return (
            f"{', '.join(f'{name} {chance:.0%}' for name, chance in said if chance >= 0.005)} (of {self.trials} trials)"
        )


def predicted(evidence: Evidence, subject: str, cells: Sequence[Cell]) -> Prediction:
    """The chance of each outcome of a trial that meets these cells, or no fault.

    Of one cell it is the mean of a Dirichlet posterior: the outcomes seen there, and those of the same fault of the
    same kind elsewhere, as ENOUGH trials. Of several, all have to be survived: the chance of a good end is the product
    of theirs, and the rest is shared as they share it, in the mean.
    """
    met: Sequence[Cell | None] = cells or [None]
    each = [_of_cell(evidence, subject, cell) for cell in met]
    trials = min(count for _, count in each)
    good = prod(sum(chances.get(name, 0.0) for name in GOOD) for chances, _ in each)
    names = sorted({name for chances, _ in each for name in chances})
    mean = {name: fmean(chances.get(name, 0.0) for chances, _ in each) for name in names}
    well = sum(mean[name] for name in names if name in GOOD)
    parts = {True: good / well if well else 0.0, False: (1 - good) / (1 - well) if well < 1 else 0.0}
    return Prediction({name: mean[name] * parts[name in GOOD] for name in names}, trials)


def _of_cell(evidence: Evidence, subject: str, cell: Cell | None) -> tuple[dict[str, float], int]:
    key = "" if cell is None else cell.key
    own, far = evidence.outcomes.get((subject, key), Counter[str]()), Counter[str]()
    for each in evidence.rows:
        if (each.cell is None) if cell is None else (each.cell is not None and _alike(each.cell, cell)):
            far.update(each.outcomes)
    far.subtract(own)
    others = sum(far.values())
    share = ENOUGH / others if others else 0.0
    total = sum(own.values()) + (ENOUGH if others else 0.0)
    names = {*own, *far}
    chances = {name: (own[name] + far[name] * share) / total for name in names if own[name] or far[name]}
    return chances, sum(own.values()) + others


def _alike(one: Cell, other: Cell) -> bool:
    return (one.fault, one.how) == (other.fault, other.how)


def brier(prediction: Prediction, outcomes: Iterable[str]) -> float | None:
    """Brier's score of a prediction, the mean over the trials of Σ (chance − 1 if it was the outcome, else 0)²: 0 is
    best, 2 is worst. None without a trial. G. W. Brier, Monthly Weather Review 78, 1950."""
    scores = []
    for outcome in outcomes:
        names = {*prediction.chances, outcome}
        scores.append(sum((prediction.chances.get(name, 0.0) - (name == outcome)) ** 2 for name in names))
    return fmean(scores) if scores else None
