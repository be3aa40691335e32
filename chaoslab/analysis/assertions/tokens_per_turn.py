"""Each turn uses at most so many tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chaoslab.analysis.assertions import Assertion, Bounds, Miss, Seen
from chaoslab.core.events import TurnStarted, Usage, UsageUnstated


@dataclass(frozen=True)
class TokensPerTurn(Assertion):
    """The model's answers of each turn use at most `tokens` tokens. A trial of one prompt is one turn. An answer that
    does not state its usage is a miss, unless `estimated` ones count: a token for four characters."""

    tokens: int
    estimated: bool = False
    bounds: ClassVar[Bounds] = {"tokens": (0, 10**15)}
    example = "{tokens: 5000}"

    def check(self, seen: Seen) -> Miss | None:
        turn, spent = 1, 0
        for record in seen.history.records:
            event = record.event
            if isinstance(event, TurnStarted):
                turn, spent = event.turn, 0
            if isinstance(event, Usage | UsageUnstated):
                if isinstance(event, UsageUnstated) and not self.estimated and seen.turn in (None, turn):
                    return Miss.unmeasured(event, record)
                spent += event.prompt_tokens + event.completion_tokens
                if spent > self.tokens and seen.turn in (None, turn):
                    return Miss.at(f"{spent} tokens in turn {turn}, at most {self.tokens} were allowed", record)
        return None
