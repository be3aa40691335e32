"""The limits that were exceeded, and the effect of each."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from chaoslab.core.events import Budget
from chaoslab.record.history import History


@dataclass(frozen=True)
class Passed:
    """A limit that was exceeded. `mode`: hard (the calls were refused) or soft (it was only recorded). `calls`,
    `trials`: the numbers of calls and trials concerned."""

    limit: str
    mode: str
    calls: int
    trials: int


def budgets(history: History) -> list[Passed]:
    """Each limit that was exceeded, sorted by its name."""
    calls: Counter[tuple[str, str]] = Counter()
    trials: dict[tuple[str, str], set[str | None]] = {}
    for record, event in history.of(Budget):
        key = event.named(setting=not history.of_functions), event.mode
        calls[key] += 1
        trials.setdefault(key, set()).add(record.trial)
    return [Passed(*key, count, len(trials[key])) for key, count in sorted(calls.items())]
