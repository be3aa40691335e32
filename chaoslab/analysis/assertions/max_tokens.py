"""The agent's model uses at most so many tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chaoslab.analysis.assertions import Assertion, Bounds, Miss, Seen
from chaoslab.core.events import UsageUnstated


@dataclass(frozen=True)
class MaxTokens(Assertion):
    """The model's answers use at most `tokens` tokens, prompts and answers together. An answer that does not state its
    usage is a miss, unless `estimated` ones count: a token for four characters."""

    tokens: int
    estimated: bool = False
    bounds: ClassVar[Bounds] = {"tokens": (0, 10**15)}
    example = "{tokens: 20000}"

    def check(self, seen: Seen) -> Miss | None:
        spent = 0
        for record, usage in seen.used():
            if isinstance(usage, UsageUnstated) and not self.estimated:
                return Miss.unmeasured(usage, record)
            spent += usage.prompt_tokens + usage.completion_tokens
            if spent > self.tokens:
                return Miss.at(
                    f"{spent} tokens by the model's answer {usage.request}, at most {self.tokens} were allowed", record
                )
        return None
