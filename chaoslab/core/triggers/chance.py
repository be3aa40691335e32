"""Rolls named dice for each attempt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from chaoslab.base.dice import Dice
from chaoslab.core.occasion import Met, Occasion
from chaoslab.core.triggers import Trigger


@dataclass(frozen=True)
class Chance(Trigger):
    """Holds with this chance (0–1). Its dice are named (seed, trial, injection, target, request, attempt). Alone, 0
    switches the injection off."""

    value: float
    should_be = "a number from 0 to 1"
    spares = True
    order = 9

    @classmethod
    def of(cls, value: Any) -> Chance:
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
            raise cls.refused()
        return cls(float(value))

    def holds(self, occasion: Occasion, met: Met) -> bool:
        if self.value >= 1:  # as any dice would say
            return True
        names = occasion.trial, met.injection, occasion.target, occasion.request, occasion.attempt
        return Dice(occasion.seed, *names, "hit").hits(self.value)

    def never(self, others: Mapping[str, Trigger]) -> str:
        if self.value == 0 and others:
            return f"chance is 0, so {' and '.join(sorted(others))} can never hit: leave chance out, or raise it"
        return ""
