"""Hits these attempts of a request: 1 is the first, 2 its first retry."""

from __future__ import annotations

from dataclasses import dataclass

from chaoslab.core.occasion import Met, Occasion
from chaoslab.core.triggers import OfNumbers


@dataclass(frozen=True)
class Attempts(OfNumbers):
    """Holds for the attempts with these numbers, counted for each request from 1."""

    value: tuple[int, ...]
    should_be = "attempts' numbers, as in [1, 2]"

    def holds(self, occasion: Occasion, met: Met) -> bool:
        return occasion.attempt in self.value
