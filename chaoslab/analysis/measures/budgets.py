"""Which limits were passed, and what came of it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from chaoslab.core.events import Budget
from chaoslab.record.history import History


@dataclass(frozen=True)
class Passed:
    """One limit in words. `mode`: hard (the calls were refused) or soft (it was only noted); `calls`, in so many `trials`."""

    limit: str
    mode: str
    calls: int
    trials: int


def budgets(history: History) -> list[Passed]:
    """Each limit that was passed, sorted by its name."""
    calls: Counter[tuple[str, str]] = Counter()
    trials: dict[tuple[str, str], set[str | None]] = {}
    for record, event in history.of(Budget):
        key = event.named(setting=not history.of_functions), event.mode
        calls[key] += 1
        trials.setdefault(key, set()).add(record.trial)
    return [Passed(*key, count, len(trials[key])) for key, count in sorted(calls.items())]
