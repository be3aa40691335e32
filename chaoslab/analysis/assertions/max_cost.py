"""The agent's model costs at most so much."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chaoslab.analysis.assertions import Assertion, Bounds, Miss, Seen
from chaoslab.core.events import UsageUnstated


@dataclass(frozen=True)
class MaxCost(Assertion):
    """The model's answers cost at most `usd` dollars. An answer of a model without a known price is a miss. So is one
    that does not state its usage, unless `estimated` tokens count: one for four characters."""

    usd: float
    estimated: bool = False
    bounds: ClassVar[Bounds] = {"usd": (0, 1e12)}
    example = "{usd: 0.05}"

    def check(self, seen: Seen) -> Miss | None:
        spent = 0.0
        for record, usage in seen.used():
            if isinstance(usage, UsageUnstated) and not self.estimated:
                return Miss.unmeasured(usage, record)
            if usage.cost_usd is None:
                return Miss.at(f"the price of {usage.model} is not known", record)
            spent += usage.cost_usd
            if spent > self.usd + 1e-12:
                return Miss.at(
                    f"{spent:.6f} USD by the model's answer {usage.request}, at most {self.usd:g} were allowed", record
                )
        return None
