"""Hits between two turns: a fault meets the first request to the target in the turn after."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from chaoslab.core.occasion import Met, Occasion
from chaoslab.core.triggers import Trigger


@dataclass(frozen=True)
class BetweenTurns(Trigger):
    """Holds for the first request to the target in each turn from the second on, as damage done between turns would
    show."""

    value: bool
    should_be = "True"

    @classmethod
    def of(cls, value: Any) -> BetweenTurns:
        if value is not True:
            raise cls.refused()
        return cls(value)

    def holds(self, occasion: Occasion, met: Met) -> bool:
        return occasion.turn > 1 and occasion.in_turn == 1

    def beyond(self, turns: int) -> str:
        return "" if turns > 1 else "between_turns needs two turns"
