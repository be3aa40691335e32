"""Hits exactly these requests to the target, counted from 1."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from chaoslab.core.occasion import Met, Occasion
from chaoslab.core.triggers import OfNumbers, Trigger


@dataclass(frozen=True)
class Calls(OfNumbers):
    """Holds for the requests with these numbers: their first attempts, unless `attempts` names others."""

    value: tuple[int, ...]
    should_be = "requests' numbers, as in [1, 3]"

    def holds(self, occasion: Occasion, met: Met) -> bool:
        return occasion.request in self.value

    def never(self, others: Mapping[str, Trigger]) -> str:
        if (after := others.get("after_calls")) is not None and self.value[-1] <= after.value:
            return f"calls are {list(self.value)} and after_calls={after.value} leaves all of them out"
        if (every := others.get("every")) is not None and not any(n % every.value == 0 for n in self.value):
            return f"calls are {list(self.value)} and every={every.value} leaves all of them out"
        return ""
