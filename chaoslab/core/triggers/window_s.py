"""Hits within a window of the trial's time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from chaoslab.core.occasion import Met, Occasion
from chaoslab.core.triggers import Trigger


@dataclass(frozen=True)
class WindowS(Trigger):
    """Holds from the first to before the second of two moments, in seconds since the trial began."""

    value: tuple[float, float]
    should_be = "two moments in seconds since the trial began, the first before the second, as in [5, 20]"
    timed = True

    @classmethod
    def of(cls, value: Any) -> WindowS:
        if not isinstance(value, list | tuple) or len(value) != 2:
            raise cls.refused()
        if any(isinstance(moment, bool) or not isinstance(moment, int | float) for moment in value):
            raise cls.refused()
        begin, end = map(float, value)
        if not (0 <= begin < end and math.isfinite(begin)):
            raise cls.refused()
        return cls((begin, end))

    def holds(self, occasion: Occasion, met: Met) -> bool:
        begin, end = self.value
        return begin <= occasion.elapsed_s < end
