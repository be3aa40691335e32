"""Triggers that count requests, attempts and hits, or roll dice."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from chaoslab.base.dice import draw_uniform
from chaoslab.base.parsers import SECONDS_MAX
from chaoslab.core.occasion import HitsSoFar, Occasion
from chaoslab.core.triggers import OfNumber, OfNumbers, Trigger


@dataclass(frozen=True)
class Calls(OfNumbers):
    """Holds for the requests with these numbers: their first attempts, unless `attempts` names others."""

    value: tuple[int, ...]
    should_be = "requests' numbers, as in [1, 3]"

    def holds(self, occasion: Occasion, hits: HitsSoFar) -> bool:
        return occasion.request in self.value

    def explain_never_holding(self, triggers: Mapping[str, Trigger]) -> str:
        if (after := triggers.get("after_calls")) is not None and self.value[-1] <= after.value:
            return f"calls are {list(self.value)} and after_calls={after.value} leaves all of them out"
        if (every := triggers.get("every")) is not None and not any(n % every.value == 0 for n in self.value):
            return f"calls are {list(self.value)} and every={every.value} leaves all of them out"
        return ""


@dataclass(frozen=True)
class Attempts(OfNumbers):
    """Holds for the attempts with these numbers, counted for each request from 1."""

    value: tuple[int, ...]
    should_be = "attempts' numbers, as in [1, 2]"

    def holds(self, occasion: Occasion, hits: HitsSoFar) -> bool:
        return occasion.attempt in self.value


@dataclass(frozen=True)
class Every(OfNumber):
    """Holds for the requests number n, 2n, 3n and so on: their first attempts, unless `attempts` names others."""

    value: int
    should_be = "a whole number, 1 or more, as in 3 for the 3rd, 6th, 9th request"

    def holds(self, occasion: Occasion, hits: HitsSoFar) -> bool:
        return occasion.request % self.value == 0


@dataclass(frozen=True)
class AfterCalls(OfNumber):
    """Holds for all requests to the target but the first n."""

    value: int
    should_be = "a whole number, 1 or more: the requests that are spared"

    def holds(self, occasion: Occasion, hits: HitsSoFar) -> bool:
        return occasion.request > self.value


@dataclass(frozen=True)
class MaxTimes(OfNumber):
    """Holds until the injection has hit n times in the trial, over all its targets."""

    value: int
    should_be = "a whole number, 1 or more"
    place = True

    def holds(self, occasion: Occasion, hits: HitsSoFar) -> bool:
        return hits.times < self.value


@dataclass(frozen=True)
class Chance(Trigger):
    """Holds with this chance (0–1). Its dice are named (seed, trial, injection, target, request, attempt). Alone, 0
    switches the injection off."""

    value: float
    should_be = "a number from 0 to 1"
    spares = True
    # Last, since dice cost a hash.
    order = 9

    @classmethod
    def from_value(cls, value: Any) -> "Chance":
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
            raise cls.refused()
        return cls(float(value))

    def holds(self, occasion: Occasion, hits: HitsSoFar) -> bool:
        at = occasion
        return draw_uniform(at.seed, at.trial, hits.injection, at.target, at.request, at.attempt, "hit") < self.value

    def explain_never_holding(self, triggers: Mapping[str, Trigger]) -> str:
        if self.value == 0 and triggers:
            return f"chance is 0, so {' and '.join(sorted(triggers))} can never hit: leave chance out, or raise it"
        return ""


_FORM = re.compile(r"(once)|(for_good)|burst ([1-9][0-9]{0,6})|for_s ([0-9]{1,9}(?:\.[0-9]{1,9})?)")


@dataclass(frozen=True)
class Persistence(Trigger):
    """`once`: one hit in the trial. `burst n`: n hits in a row. `for_s x`: all attempts for x seconds. `for_good`: all
    attempts until the trial ends. `tool`, `when` and `max_times` hold for the later hits too."""

    value: str
    hits: float = 1
    """The number of hits in a row; 0 if time limits them."""
    span_s: float = 0.0
    spares = True
    timed = True
    should_be = "'once', 'burst 3', 'for_s 2.5' or 'for_good'"

    @classmethod
    def from_value(cls, value: Any) -> "Persistence":
        match = _FORM.fullmatch(value) if isinstance(value, str) else None
        if match is None:
            raise cls.refused()
        _, for_good, burst, span = match.groups()
        if for_good:
            return cls(value, 0, float("inf"))
        if burst:
            return cls(value, int(burst))
        if span is None:
            return cls(value)
        if not 0 < float(span) <= SECONDS_MAX:
            raise cls.refused()
        return cls(value, 0, float(span))

    @property
    def is_time_limited(self) -> bool:
        """True if time limits it, not a number of hits."""
        return self.span_s > 0

    def holds(self, occasion: Occasion, hits: HitsSoFar) -> bool:
        return not (hits.times and self.value == "once")

    def is_still_active(self, occasion: Occasion, hits: HitsSoFar) -> bool:
        """Tells if the last hit, which there was, still goes on at this attempt."""
        return occasion.elapsed_s < hits.since_s + self.span_s if self.span_s else hits.in_a_row < self.hits

    def explain_never_holding(self, triggers: Mapping[str, Trigger]) -> str:
        max_times = triggers.get("max_times")
        if max_times is not None and self.hits > max_times.value:
            return f"persistence is '{self.value}', and max_times={max_times.value} ends it before"
        if max_times is not None and self.value == "once" and max_times.value > 1:
            return f"persistence is 'once', and max_times is {max_times.value}"
        return ""
