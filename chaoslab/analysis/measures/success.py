"""How many trials ended how. The share of each outcome is of all trials; `correct` alone is of those that could be judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from chaoslab.analysis.measures.intervals import Rate, rate

UNJUDGED = ("unknown", "invalid", "unfinished")


@dataclass(frozen=True)
class Success:
    """`by_outcome`: the outcomes that occurred; `correct`: None when no trial could be judged."""

    total: int
    by_outcome: dict[str, Rate]
    correct: Rate | None


def success(outcomes: Iterable[str], *, judgeable: bool = True) -> Success:
    """The rates with Wilson intervals, from one outcome per trial (as `judge` gives them).

    `judgeable`: False where nothing was stated about right answers, so that only failures could be found and no share of correct ones.
    """
    counts = Counter(str(outcome) for outcome in outcomes)
    total = counts.total()
    rates = {name: rate(count, total) for name, count in counts.items()}
    judged = total - sum(counts[name] for name in UNJUDGED)
    by_outcome = {name: found for name, found in rates.items() if found is not None}
    return Success(total, by_outcome, rate(counts["correct"], judged) if judgeable else None)
