"""The cost of the model's answers, and the limits that were exceeded, with the effect of each."""

import math
from dataclasses import dataclass, field

from chaoslab.core.events import Budget, Usage
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
class LimitsPassed:
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


@dataclass(frozen=True)
class Spent:
    """The sums of tokens and costs. `cost_usd`: the sum of the known costs, None if none is known. `unpriced`: the
    number of answers without a known cost."""

    answers: int
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float | None
    unpriced: int


@dataclass
class Bill:
    """Adds up the answers of batches."""

    answers: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    costs: list[float] = field(default_factory=list)

    def take(self, history: History) -> None:
        for _, event in history.of(Usage):
            self.answers += 1
            self.prompt_tokens += event.prompt_tokens
            self.completion_tokens += event.completion_tokens
            if event.cost_usd is not None:
                self.costs.append(event.cost_usd)

    def result(self) -> Spent | None:
        if not self.answers:
            return None
        cost_usd = math.fsum(self.costs) if self.costs else None
        return Spent(self.answers, self.prompt_tokens, self.completion_tokens, cost_usd, self.answers - len(self.costs))
