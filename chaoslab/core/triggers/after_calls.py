"""Spares the first requests to the target."""

from __future__ import annotations

from dataclasses import dataclass

from chaoslab.core.occasion import Met, Occasion
from chaoslab.core.triggers import OfNumber


@dataclass(frozen=True)
class AfterCalls(OfNumber):
    """Holds for all requests to the target but the first n."""

    value: int
    should_be = "a whole number, 1 or more: the requests that are spared"

    def holds(self, occasion: Occasion, met: Met) -> bool:
        return occasion.request > self.value
