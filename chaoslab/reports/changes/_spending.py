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
        difference = self._told(self.difference, "+") if self.difference else "0"
        between = ""
        if self.interval is not None:
            between = f"{self._told(self.interval.low, '+')} to {self._told(self.interval.high, '+')}"
        return self._told(self.then), self._told(self.now), difference, between

    def _told(self, value: float, sign: str = "") -> str:
        unit = UNITS[self.amount]
        return f"{round(value, DIGITS[unit]) + 0.0:{sign},.{DIGITS[unit]}f} {unit}".strip()


def moved(then: Contents, now: Contents, pairs: Sequence[tuple[TrialRow, TrialRow]]) -> tuple[MovedAmount, ...]:
    """The amounts that both runs know, over these pairs; an amount that is 0 in all of them is left out."""
    ended = [pair for pair in pairs if not any(row.outcome in NO_TIME for row in pair)]
    return tuple(_moved(then, now, ended))


def _moved(then: Contents, now: Contents, pairs: Sequence[tuple[TrialRow, TrialRow]]) -> Iterator[MovedAmount]:
    before, after = _known(then), _known(now)
    for amount in UNITS:
        if amount not in before or amount not in after:
            continue
        both = [(row.prompt, before[amount](row), after[amount](other)) for row, other in pairs]
        known = [(prompt, was, is_now) for prompt, was, is_now in both if was is not None and is_now is not None]
        if not any(was or is_now for _, was, is_now in known):
            continue
        by_prompt: dict[str, list[float]] = {}
        for prompt, was, is_now in known:
            by_prompt.setdefault(prompt, []).append(is_now - was)
        units = [median(each) for each in by_prompt.values()]
        found = median_interval(units if len(units) > 1 else next(iter(by_prompt.values())))
        bounds = found.interval
        yield MovedAmount(
            amount,
            then=median(was for _, was, _ in known),
            now=median(is_now for _, _, is_now in known),
            difference=found.value,
            interval=None if isinf(bounds.low) or bounds.low == bounds.high else bounds,
            pairs=len(known),
        )


def _known(of: Contents) -> dict[str, Callable[[TrialRow], float | None]]:
    """The amounts that a run knows of its trials."""
    known: dict[str, Callable[[TrialRow], float | None]] = {
        "seconds": lambda row: row.seconds,
        "calls": lambda row: row.calls,
        "failed calls": lambda row: row.failed,
        "retries": lambda row: row.retries,
    }
    figures, spent = of.report.figures.value.by_key, of.report.usage.value
    if of.report.knows_usage:
        known["tokens"] = lambda row: figures[row.trial].tokens
        if spent is None or not spent.unpriced:
            known["dollars"] = lambda row: float(figures[row.trial].usd)
    return known
