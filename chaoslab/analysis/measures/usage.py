"""What the model's answers cost."""

from __future__ import annotations

from dataclasses import dataclass

from chaoslab.core.events import Usage
from chaoslab.record.history import History


@dataclass(frozen=True)
class Spent:
    """`cost_usd` is the sum of the known costs, None when none is known; `unpriced` counts the answers without one."""

    answers: int
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float | None
    unpriced: int


def usage(history: History, *, trial: str | None = None) -> Spent | None:
    """The sum over a run or a trial; None when the model never answered."""
    events = [event for _, event in history.of(Usage, trial=trial)]
    if not events:
        return None
    costs = [event.cost_usd for event in events if event.cost_usd is not None]
    return Spent(
        len(events),
        sum(event.prompt_tokens for event in events),
        sum(event.completion_tokens for event in events),
        sum(costs) if costs else None,
        len(events) - len(costs),
    )
