"""Limits the hits in one trial."""

from __future__ import annotations

from dataclasses import dataclass

from chaoslab.core.occasion import Met, Occasion
from chaoslab.core.triggers import OfNumber


@dataclass(frozen=True)
class MaxTimes(OfNumber):
    """Holds until the injection has hit n times in the trial, over all its targets."""

    value: int
    should_be = "a whole number, 1 or more"
    place = True

    def holds(self, occasion: Occasion, met: Met) -> bool:
        return met.times < self.value
