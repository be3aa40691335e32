"""The number and share of trials per outcome. The share is of all trials; for `correct` it is of those that could be
judged."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from chaoslab.analysis.measures.intervals import Rate, rate
from chaoslab.analysis.verdict.table import UNJUDGED


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
