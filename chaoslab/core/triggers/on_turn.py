"""Hits in these turns of the conversation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from chaoslab.core.occasion import Met, Occasion
from chaoslab.core.triggers import OfNumbers, Trigger


@dataclass(frozen=True)
class OnTurn(OfNumbers):
    """Holds in the turns with these numbers, counted from 1."""

    value: tuple[int, ...]
    should_be = "turns' numbers, as in [2]"

    @classmethod
    def of(cls, value: Any) -> OnTurn:
        return super().of([value] if type(value) is int else value)

    def holds(self, occasion: Occasion, met: Met) -> bool:
        return occasion.turn in self.value

    def never(self, others: Mapping[str, Trigger]) -> str:
        if "between_turns" in others and self.value == (1,):
            return "on_turn is [1], and between_turns holds from turn 2 on"
        return ""

    def beyond(self, turns: int) -> str:
        return "" if self.value[0] <= turns else f"on_turn is {list(self.value)}"
