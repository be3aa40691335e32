"""Assertions on tokens and dollars."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chaoslab.analysis.assertions import Assertion, Bounds, FinishedTrial, Miss
from chaoslab.core.events import TurnStarted, Usage, UsageUnstated


@dataclass(frozen=True)
class MaxCost(Assertion):
    """The model's answers cost at most `usd` dollars. An answer of a model without a known price is a miss. So is one
    that does not state its usage, unless `estimated` tokens count: one for four characters."""

    usd: float
    estimated: bool = False
    bounds: ClassVar[Bounds] = {"usd": (0, 1e12)}
    example = "{usd: 0.05}"

    def check(self, trial: FinishedTrial) -> Miss | None:
        spent = 0.0
        for record, usage in trial.iterate_model_usage():
            if isinstance(usage, UsageUnstated) and not self.estimated:
                return Miss.from_unstated_usage(usage, record)
            if usage.cost_usd is None:
                return Miss.from_records(f"the price of {usage.model} is not known", record)
            spent += usage.cost_usd
            # A sum of floats may lie a little above the limit that it equals.
            if spent > self.usd + 1e-12:
                return Miss.from_records(
                    f"{spent:.6f} USD by the model's answer {usage.request}, at most {self.usd:g} were allowed", record
                )
        return None


@dataclass(frozen=True)
class MaxTokens(Assertion):
    """The model's answers use at most `tokens` tokens, prompts and answers together. An answer that does not state its
    usage is a miss, unless `estimated` ones count: a token for four characters."""

    tokens: int
    estimated: bool = False
    bounds: ClassVar[Bounds] = {"tokens": (0, 10**15)}
    example = "{tokens: 20000}"

    def check(self, trial: FinishedTrial) -> Miss | None:
        spent = 0
        for record, usage in trial.iterate_model_usage():
            if isinstance(usage, UsageUnstated) and not self.estimated:
                return Miss.from_unstated_usage(usage, record)
            spent += usage.prompt_tokens + usage.completion_tokens
            if spent > self.tokens:
                return Miss.from_records(
                    f"{spent} tokens by the model's answer {usage.request}, at most {self.tokens} were allowed", record
                )
        return None


@dataclass(frozen=True)
class TokensPerTurn(Assertion):
    """The model's answers of each turn use at most `tokens` tokens. A trial of one prompt is one turn. An answer that
    does not state its usage is a miss, unless `estimated` ones count: a token for four characters."""

    tokens: int
    estimated: bool = False
    bounds: ClassVar[Bounds] = {"tokens": (0, 10**15)}
    example = "{tokens: 5000}"

    def check(self, trial: FinishedTrial) -> Miss | None:
        turn, spent = 1, 0
        for record in trial.history.records:
            event = record.event
            if isinstance(event, TurnStarted):
                turn, spent = event.turn, 0
            if isinstance(event, Usage | UsageUnstated):
                if isinstance(event, UsageUnstated) and not self.estimated and trial.turn in (None, turn):
                    return Miss.from_unstated_usage(event, record)
                spent += event.prompt_tokens + event.completion_tokens
                if spent > self.tokens and trial.turn in (None, turn):
                    return Miss.from_records(
                        f"{spent} tokens in turn {turn}, at most {self.tokens} were allowed", record
                    )
        return None
