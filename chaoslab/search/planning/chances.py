"""The chance that a cell's next trial ends badly, or with harm, from the trials of one agent with one fault alone.

Beta-binomial shrinkage, from far to near: all trials; those at the same target; those whose callers see the same
(`seen`); those with the same fault; with the same seen at the same target; with the same fault at the same target, of
any kind and dose; and the cell's own. Each level moves the mean, m ← (WORTH·m + bad) / (WORTH + trials), so one without
trials changes nothing. The order and WORTH were chosen with other agents than those of benchmarks/plan.py.

A prediction of a cell with few trials of its own is told only if, each known cell predicted from the others, the mean
is at least as good (Brier) as the base rate, the target's rate and the fault's rate are.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from statistics import fmean

from chaoslab.search.planning.cells import Cell
from chaoslab.search.planning.evidence import BAD, HARM, Evidence, Tally
from chaoslab.search.planning.seen import ERROR, LATE, WRONG, Seen, classify_what_caller_sees

WORTH = 4.0
"""The trials that the mean of a level counts as, beside those of the next."""
FEWEST = 8
"""The trials below which nothing is predicted."""
EACH = 5
"""The bad ends, and the others, below which nothing is foretold of a cell that was not tried."""
BASES = (("",), ("", "target"), ("", "fault"))
"""The levels of what a prediction has to be as good as."""
LEVELS = ("", "target", "seen", "fault", "seen at", "fault at")


def get_prior_harm_weight(sight: Seen) -> float:
    """The weight of harm where nothing was tried: it orders cells, and predicts nothing."""
    if sight.doubt:
        return 0.35  # it may be done again, and not undone
    if sight.what == WRONG and not sight.changes:
        return 0.3  # it may be acted on
    return {ERROR: 0.25, LATE: 0.05}.get(sight.what, 0.1)


NONE = Tally()


class Chances:
    """The chances of an agent's cells, by its evidence."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        self._sums: dict[tuple[object, ...], Tally] = defaultdict(Tally)
        self._known_keys: dict[Cell, Mapping[str, tuple[object, ...]]] = {}
        for cell, tally in evidence.cells.items():
            self.add_trials(cell, tally)

    def classify_what_caller_sees(self, cell: Cell) -> Seen:
        return classify_what_caller_sees(cell, changes=self.evidence.has_effects(cell.target))

    def add_trials(self, cell: Cell, tally: Tally) -> None:
        """Counts trials of a cell at all levels but its own."""
        for key in self._build_level_keys(cell).values():
            self._sums[key] += tally

    def _build_level_keys(self, cell: Cell) -> Mapping[str, tuple[object, ...]]:
        if cell not in self._known_keys:
            sight, target, fault = self.classify_what_caller_sees(cell), cell.target, cell.fault
            values = ((), (target,), (sight,), (fault,), (target, sight), (target, fault))
            self._known_keys[cell] = {level: (level, *value) for level, value in zip(LEVELS, values, strict=True)}
        return self._known_keys[cell]

    def get_tally_at_level(self, cell: Cell, level: str) -> Tally:
        """The trials at a level of a cell."""
        return self._sums.get(self._build_level_keys(cell)[level], NONE)

    def compute_bad_end_chance(self, cell: Cell, end: str = BAD) -> float:
        """The chance of a cell. `end`: BAD, or HARM, whose mean begins with the fault's story."""
        mean, worth = (
            (get_prior_harm_weight(self.classify_what_caller_sees(cell)), WORTH) if end == HARM else (0.5, 1.0)
        )
        mean = self.compute_mean_over_levels(cell, LEVELS, end, mean, worth)
        tally = self.evidence.cells.get(cell.dose_bucket_cell, NONE)
        return (mean + tally.count_trials_ended(end)) / (1 + tally.tried)

    def compute_mean_over_levels(
        self,
        cell: Cell,
        levels: Sequence[str],
        end: str = BAD,
        mean: float = 0.5,
        worth: float = 1.0,
        less: Tally = NONE,
    ) -> float:
        """The mean after these levels, begun with `mean`, without the trials `less`, which each of them holds."""
        keys = self._build_level_keys(cell)
        for level in levels:
            # As the default too: at a level that nobody tried this comes to nothing, and not below it.
            tally = self._sums.get(keys[level], less) - less
            mean = (worth * mean + tally.count_trials_ended(end)) / (worth + tally.tried)
            worth = WORTH
        return mean

    def predict(self, cells: Sequence[Cell]) -> "Prediction":
        """The prediction of a trial that meets these cells, or no fault."""
        if not cells:
            calm = self.evidence.calm
            # Half a bad trial in one, as Jeffreys' prior has it: no rate of few trials is 0 or 1.
            rate = (calm.bad + 0.5) / (calm.tried + 1)
            few = _describe_too_little_data(calm.tried, "without faults") if calm.tried < FEWEST else ""
            return Prediction(rate, rate, calm.tried, few)
        total = self._sums[("",)]
        base = (total.bad + 0.5) / (total.tried + 1)
        tried_least = min(self.evidence.cells.get(cell.dose_bucket_cell, NONE).tried for cell in cells)
        reason = ""
        if total.tried < FEWEST:
            reason = _describe_too_little_data(total.tried, "with one fault alone")
        # Trials of its own, if there are enough, tell of a cell whatever the others foretell of each other.
        elif tried_least < FEWEST and not self.is_informative:
            rates = f"{total.bad} of {total.tried} trials ended badly"
            reason = f"nothing is foretold: {rates}, and they do not foretell each other better than that share"
        # As if they were independent: trials with one fault alone are the evidence, and tell not how two act together.
        well, base_well = (
            prod(1 - cell for cell in chances)
            for chances in (map(self.compute_bad_end_chance, cells), [base] * len(cells))
        )
        return Prediction(1 - well, 1 - base_well, total.tried, reason)

    @cached_property
    def is_informative(self) -> bool:
        """True if the mean is as good as what it has to be as good as, each known cell predicted from the others."""
        total = self._sums[("",)]
        scores = [[*self._iterate_leave_out_scores(cell, tally)] for cell, tally in self.evidence.cells.items()]
        if min(total.bad, total.tried - total.bad) < EACH:
            return False
        score, *other_scores = (fmean(column) for column in zip(*scores, strict=True))
        # A tie is enough, and sums of floats may differ in their last digits.
        return score <= min(other_scores) + 1e-12

    def _iterate_leave_out_scores(self, cell: Cell, tally: Tally) -> Iterator[float]:
        """Brier's scores of a cell that was left out: of the mean, and of BASES."""
        for levels in (LEVELS, *BASES):
            mean = self.compute_mean_over_levels(cell, levels, less=tally)
            yield (tally.bad * (1 - mean) ** 2 + (tally.tried - tally.bad) * mean**2) / tally.tried


def _describe_too_little_data(count: int, which: str) -> str:
    return f"too little data: {count} trials {which} at this revision, and {FEWEST} are needed"


@dataclass(frozen=True)
class Prediction:
    """The chance of a bad end of a trial. `base`: the base rate, the share of all trials with one fault alone that
    ended badly. `trials`: those. `why`: the reason why nothing is said; empty if something is."""

    bad: float
    base: float
    trials: int
    why: str = ""

    def __str__(self) -> str:
        return self.why or f"a bad end {self.bad:.0%} (base rate {self.base:.0%} of {self.trials} trials)"


def brier_score(chance: float, bad: bool) -> float:
    """Brier's score of a chance, (chance − what came)²: 0 is best, 1 is worst. G. W. Brier, Monthly Weather Review 78,
    1950."""
    return (chance - bad) ** 2
