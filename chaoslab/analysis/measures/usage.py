"""The cost of the model's answers."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from chaoslab.core.events import Usage
from chaoslab.record.history import History


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

    def take(self, history: History, *, trial: str | None = None) -> None:
        for _, event in history.of(Usage, trial=trial):
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


def usage(history: History, *, trial: str | None = None) -> Spent | None:
    """The sum over a run or a trial; None if the model never answered."""
    found = Bill()
    found.take(history, trial=trial)
    return found.result()
