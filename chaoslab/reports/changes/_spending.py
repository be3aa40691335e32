"""The spending of two runs side by side: the median of what a trial took then and now, and of the difference.

A pair counts if both of its trials ended, and by themselves. The difference is the median over the prompts of the
median of their pairs, and its interval is by their order (`median_interval`), since a few trials may cost more than all
others. If all pairs are of one prompt, it is that over the pairs.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import isinf
from statistics import median

from chaoslab.analysis.measures.intervals import Interval, median_interval
from chaoslab.analysis.measures.trials import NO_TIME
from chaoslab.reports.contents import Contents
from chaoslab.reports.contents._rows import TrialRow

UNITS = {"seconds": "s", "calls": "", "failed calls": "", "retries": "", "tokens": "", "dollars": "USD"}
"""Amount → its unit, in the order in which they are told."""
DIGITS = {"s": 2, "USD": 6, "": 2}


@dataclass(frozen=True)
class MovedAmount:
    """One amount. `then`, `now`: its median over `pairs` pairs. `difference`: now less then, the median. `interval`:
    that of the difference; None of fewer prompts than six, or if all differ alike."""

    amount: str
    then: float
    now: float
    difference: float
    interval: Interval | None
    pairs: int

    @property
    def cells(self) -> tuple[str, str, str, str]:
        """The means, the difference and its interval, as text."""
        # Not "+0": nothing changed.
        difference = self._told(self.difference, "+") if self.difference else "0"
        between = ""
        if self.interval is not None:
            between = f"{self._told(self.interval.low, '+')} to {self._told(self.interval.high, '+')}"
        return self._told(self.then), self._told(self.now), difference, between

    def _told(self, value: float, sign: str = "") -> str:
        unit = UNITS[self.amount]
        # + 0.0, so that no rounded value is -0.
        return f"{round(value, DIGITS[unit]) + 0.0:{sign},.{DIGITS[unit]}f} {unit}".strip()


def compare_spending(
    then: Contents, now: Contents, pairs: Sequence[tuple[TrialRow, TrialRow]]
) -> tuple[MovedAmount, ...]:
    """The amounts that both runs know, over these pairs; an amount that is 0 in all of them is left out."""
    # One that was ended from outside took as long as it was let.
    ended = [pair for pair in pairs if not any(row.outcome in NO_TIME for row in pair)]
    return tuple(_compare_amounts(then, now, ended))


def _compare_amounts(
    then: Contents, now: Contents, pairs: Sequence[tuple[TrialRow, TrialRow]]
) -> Iterator[MovedAmount]:
    before, after = _read_known_amounts(then), _read_known_amounts(now)
    for amount in UNITS:
        if amount not in before or amount not in after:
            continue
        both = [(row.prompt, before[amount](row), after[amount](after_row)) for row, after_row in pairs]
        known_pairs = [
            (prompt, before_value, after_value)
            for prompt, before_value, after_value in both
            if before_value is not None and after_value is not None
        ]
        if not any(before_value or after_value for _, before_value, after_value in known_pairs):
            continue
        by_prompt: dict[str, list[float]] = {}
        for prompt, before_value, after_value in known_pairs:
            by_prompt.setdefault(prompt, []).append(after_value - before_value)
        # The prompt is the unit: a hundred pairs of one prompt say as little of others as one.
        units = [median(amounts) for amounts in by_prompt.values()]
        # Of one prompt alone the pairs are all that there is.
        estimate = median_interval(units if len(units) > 1 else next(iter(by_prompt.values())))
        bounds = estimate.interval
        yield MovedAmount(
            amount,
            then=median(before_value for _, before_value, _ in known_pairs),
            now=median(after_value for _, _, after_value in known_pairs),
            difference=estimate.value,
            # All equal or too few: no interval can be told.
            interval=None if isinf(bounds.low) or bounds.low == bounds.high else bounds,
            pairs=len(known_pairs),
        )


def _read_known_amounts(contents: Contents) -> dict[str, Callable[[TrialRow], float | None]]:
    """The amounts that a run knows of its trials."""
    readers: dict[str, Callable[[TrialRow], float | None]] = {
        "seconds": lambda row: row.seconds,
        "calls": lambda row: row.calls,
        "failed calls": lambda row: row.failed,
        "retries": lambda row: row.retries,
    }
    figures, spent = contents.report.figures.value.by_key, contents.report.usage.value
    if contents.report.knows_usage:
        readers["tokens"] = lambda row: figures[row.trial].tokens
        # One answer without a price makes every sum of dollars too low.
        if spent is None or not spent.unpriced:
            readers["dollars"] = lambda row: float(figures[row.trial].usd)
    return readers
