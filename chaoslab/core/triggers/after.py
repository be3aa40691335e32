"""Hits after another injection has hit: a cascade."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from chaoslab.core.occasion import Met, Occasion
from chaoslab.core.triggers import Trigger


@dataclass(frozen=True)
class After(Trigger):
    """Holds once the injection of this name has hit an earlier attempt of the trial, or has done so n times."""

    value: str
    times: int = 1
    spares = True
    should_be = "another injection's name, or its name and a number of hits, as in ['latency on search', 3]"

    @property
    def plain(self) -> Any:
        return self.value if self.times == 1 else [self.value, self.times]

    @classmethod
    def of(cls, value: Any) -> After:
        name, times = value if isinstance(value, list | tuple) and len(value) == 2 else (value, 1)
        if not isinstance(name, str) or not name or type(times) is not int or times < 1:
            raise cls.refused()
        return cls(name, times)

    def holds(self, occasion: Occasion, met: Met) -> bool:
        other = occasion.met.get(self.value)
        return other is not None and other.times >= self.times
