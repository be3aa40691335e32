"""Hits the calls whose arguments fulfil a condition."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from chaoslab.core.condition import Condition, parse
from chaoslab.core.occasion import Met, Occasion
from chaoslab.core.triggers import Trigger


@dataclass(frozen=True)
class When(Trigger):
    """Holds for the calls whose arguments fulfil the condition, as in `amount > 100 and currency == "EUR"`."""

    value: str
    condition: Condition = field(kw_only=True)
    should_be = "a condition on the arguments, as in 'amount > 100'"
    place = True
    reads = True
    order = 2

    @classmethod
    def of(cls, value: Any) -> When:
        if not isinstance(value, str):
            raise cls.refused()
        return cls(value, condition=parse(value))

    def holds(self, occasion: Occasion, met: Met) -> bool:
        return self.condition.holds(occasion.arguments)
