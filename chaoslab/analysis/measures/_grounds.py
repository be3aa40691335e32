"""The number and share of trials per outcome, and the evidence that the verdicts of a run rest on. The share is of all
trials; for `correct` it is of those that could be judged."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from chaoslab.analysis.measures.intervals import Rate, rate
from chaoslab.analysis.verdict.table import UNJUDGED, Basis, Verdict

GUESSED = (Basis.JUDGE, Basis.WORDS)
"""The bases that are not certain by themselves."""


@dataclass(frozen=True)
class Grounds:
    """The verdicts that reach a conclusion, by basis; and the unknown ones by what became of their world."""

    by_basis: Mapping[Basis, int]
    unknown: Mapping[str, int]

    @property
    def judged(self) -> int:
        """The verdicts that reach a conclusion."""
        return sum(self.by_basis.values())

    @property
    def said(self) -> str:
        """The sums as a sentence without its full stop; empty if no verdict reaches a conclusion."""
        if not self.judged:
            return ""
        end = self.by_basis.get(Basis.END, 0)
        what = "the trial's end, effects, state or values" if end else "effects, state or values"
        rest = [
            f"{number} on {'words' if basis is Basis.WORDS else 'a model'}"
            for basis in GUESSED
            if (number := self.by_basis.get(basis, 0))
        ]
        sure = self.judged - sum(self.by_basis.get(basis, 0) for basis in GUESSED)
        verb = "verdict rests" if self.judged == 1 else "verdicts rest"
        return "; ".join([f"{sure} of {self.judged} {verb} on {what}", *rest])

    @property
    def undecided(self) -> str:
        """The unknown verdicts by their world, as in "3 unknown: 2 left undone, 1 as asked"; empty if there are
        none."""
        if not self.unknown:
            return ""
        total = sum(self.unknown.values())
        return f"{total} unknown: " + ", ".join(f"{number} {world}" for world, number in self.unknown.items())


def grounds(verdicts: Iterable[Verdict]) -> Grounds:
    """The sums over these verdicts."""
    by_basis: Counter[Basis] = Counter()
    unknown: Counter[str] = Counter()
    for verdict in verdicts:
        if str(verdict.outcome) not in UNJUDGED:
            by_basis[verdict.basis] += 1
        elif str(verdict.outcome) == "unknown":
            unknown[str(verdict.world)] += 1
    return Grounds(dict(by_basis), dict(unknown.most_common()))


@dataclass(frozen=True)
class Success:
    """The rates of a run. `by_outcome`: the outcomes that occurred. `correct`: None if no trial could be judged."""

    total: int
    by_outcome: dict[str, Rate]
    correct: Rate | None


def success(outcomes: Iterable[str], *, judgeable: bool = True) -> Success:
    """The rates with Wilson intervals, from one outcome per trial (as `judge` gives them). `judgeable`: False if
    nothing was stated about right answers: then only failures can be found, and there is no share of correct ones."""
    counts = Counter(str(outcome) for outcome in outcomes)
    total = counts.total()
    rates = {name: rate(count, total) for name, count in counts.items()}
    judged = total - sum(counts[name] for name in UNJUDGED)
    by_outcome = {name: found for name, found in rates.items() if found is not None}
    return Success(total, by_outcome, rate(counts["correct"], judged) if judgeable else None)
