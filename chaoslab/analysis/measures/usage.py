"""The cost of the model's answers."""

from __future__ import annotations

import math
from dataclasses import dataclass

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


def usage(history: History, *, trial: str | None = None) -> Spent | None:
    """The sum over a run or a trial; None if the model never answered."""
    events = [event for _, event in history.of(Usage, trial=trial)]
    if not events:
        return None
    costs = [event.cost_usd for event in events if event.cost_usd is not None]
    return Spent(
        len(events),
        sum(event.prompt_tokens for event in events),
        sum(event.completion_tokens for event in events),
        math.fsum(costs) if costs else None,
        len(events) - len(costs),
    )
