"""Hits every nth request to the target."""

from __future__ import annotations

from dataclasses import dataclass

from chaoslab.core.occasion import Met, Occasion
from chaoslab.core.triggers import OfNumber


@dataclass(frozen=True)
class Every(OfNumber):
    """Holds for the requests number n, 2n, 3n and so on: their first attempts, unless `attempts` names others."""

    value: int
    should_be = "a whole number, 1 or more, as in 3 for the 3rd, 6th, 9th request"

    def holds(self, occasion: Occasion, met: Met) -> bool:
        return occasion.request % self.value == 0
