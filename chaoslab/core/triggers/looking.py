"""Triggers that look at the call, the turn, the time or another injection."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import translate
from functools import cached_property
from typing import Any

from chaoslab.core._condition import Condition, parse_condition
from chaoslab.core.occasion import HitsSoFar, Occasion
from chaoslab.core.triggers import OfNumbers, OnlyTrue, Trigger

KNOWN_MAX = 256


@dataclass(frozen=True)
class Tool(Trigger):
    """Holds for the calls of a tool whose name matches the pattern; `*` stands for any text."""

    value: str
    should_be = "a tool's name, or a pattern such as 'get_*'"
    place = True
    order = 1

    @classmethod
    def from_value(cls, value: Any) -> Tool:
        if not isinstance(value, str) or not value or len(value) > 200:
            raise cls.refused()
        return cls(value)

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile(translate(self.value))

    def holds(self, occasion: Occasion, hits: HitsSoFar) -> bool:
        matches = self._match_cache.get(occasion.tool)
        if matches is None:
            # Paths with ids in them hardly come again, so the cache is bounded.
            if len(self._match_cache) == KNOWN_MAX:
                self._match_cache.clear()
            matches = self._match_cache[occasion.tool] = self._pattern.match(occasion.tool) is not None
        return matches

    @cached_property
    def _match_cache(self) -> dict[str, bool]:
        """The names that were asked about, since most are asked about again."""
        return {}


@dataclass(frozen=True)
class Changes(OnlyTrue):
    """Holds for the calls that may change something: requests by an unsafe method, and tools that do not only read."""

    place = True
    reads = True
    order = 1

    def holds(self, occasion: Occasion, hits: HitsSoFar) -> bool:
        return occasion.changes


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
    def from_value(cls, value: Any) -> When:
        if not isinstance(value, str):
            raise cls.refused()
        return cls(value, condition=parse_condition(value))

    def holds(self, occasion: Occasion, hits: HitsSoFar) -> bool:
        return self.condition.matches_arguments(occasion.arguments)


@dataclass(frozen=True)
class OnTurn(OfNumbers):
    """Holds in the turns with these numbers, counted from 1."""

    value: tuple[int, ...]
    should_be = "turns' numbers, as in [2]"

    @classmethod
    def from_value(cls, value: Any) -> OnTurn:
        return super().from_value([value] if type(value) is int else value)

    def holds(self, occasion: Occasion, hits: HitsSoFar) -> bool:
        return occasion.turn in self.value

    def explain_never_holding(self, triggers: Mapping[str, Trigger]) -> str:
        if "between_turns" in triggers and self.value == (1,):
            return "on_turn is [1], and between_turns holds from turn 2 on"
        return ""

    def explain_too_few_turns(self, turns: int) -> str:
        return "" if self.value[0] <= turns else f"on_turn is {list(self.value)}"


@dataclass(frozen=True)
class BetweenTurns(OnlyTrue):
    """Holds for the first request to the target in each turn from the second on, as damage done between turns would
    show."""

    def holds(self, occasion: Occasion, hits: HitsSoFar) -> bool:
        return occasion.turn > 1 and occasion.in_turn == 1

    def explain_too_few_turns(self, turns: int) -> str:
        return "" if turns > 1 else "between_turns needs two turns"


@dataclass(frozen=True)
class WindowS(Trigger):
    """Holds from the first to before the second of two moments, in seconds since the trial began."""

    value: tuple[float, float]
    should_be = "two moments in seconds since the trial began, the first before the second, as in [5, 20]"
    timed = True

    @classmethod
    def from_value(cls, value: Any) -> WindowS:
        if not isinstance(value, list | tuple) or len(value) != 2:
            raise cls.refused()
        if any(isinstance(moment, bool) or not isinstance(moment, int | float) for moment in value):
            raise cls.refused()
        begin, end = map(float, value)
        # The end may be infinite. NaN fails the comparison.
        if not (0 <= begin < end and math.isfinite(begin)):
            raise cls.refused()
        return cls((begin, end))

    def holds(self, occasion: Occasion, hits: HitsSoFar) -> bool:
        begin, end = self.value
        return begin <= occasion.elapsed_s < end


@dataclass(frozen=True)
class After(Trigger):
    """Holds once the injection of this name has hit an earlier attempt of the trial, or has done so n times."""

    value: str
    times: int = 1
    spares = True
    should_be = "another injection's name, or its name and a number of hits, as in ['latency on search', 3]"

    @property
    def value_as_json(self) -> Any:
        return self.value if self.times == 1 else [self.value, self.times]

    @classmethod
    def from_value(cls, value: Any) -> After:
        name, times = value if isinstance(value, list | tuple) and len(value) == 2 else (value, 1)
        if not isinstance(name, str) or not name or type(times) is not int or times < 1:
            raise cls.refused()
        return cls(name, times)

    def holds(self, occasion: Occasion, hits: HitsSoFar) -> bool:
        earlier_hits = occasion.met.get(self.value)
        return earlier_hits is not None and earlier_hits.times >= self.times
