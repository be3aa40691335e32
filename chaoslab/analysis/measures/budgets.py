"""The limits that were exceeded, and the effect of each."""

from __future__ import annotations

from dataclasses import dataclass, field

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


@dataclass
class Limits:
    """Collects the limits that batches exceeded."""

    found: dict[tuple[str, float, str], list[tuple[Budget, str | None]]] = field(default_factory=dict)

    def take(self, history: History) -> None:
        for record, event in history.of(Budget):
            self.found.setdefault((event.limit, event.allowed, event.mode), []).append((event, record.trial))

    def result(self, *, setting: bool) -> list[Passed]:
        """Each limit, sorted by its name. `setting`: a setting states it, and no Python code."""
        named: dict[tuple[str, str], list[str | None]] = {}
        for events in self.found.values():
            first = events[0][0]
            trials = named.setdefault((first.named(setting=setting), first.mode), [])
            trials += [trial for _, trial in events]
        return [Passed(*key, len(trials), len(set(trials))) for key, trials in sorted(named.items())]


def budgets(history: History) -> list[Passed]:
    """Each limit that was exceeded, sorted by its name."""
    found = Limits()
    found.take(history)
    return found.result(setting=not history.of_functions)
