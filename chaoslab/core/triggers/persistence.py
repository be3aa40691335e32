"""Lets a fault last: once it has hit, further attempts are hit whatever the other triggers say."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from chaoslab.base.parsers import SECONDS_MAX
from chaoslab.core.occasion import Met, Occasion
from chaoslab.core.triggers import Trigger

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
    def of(cls, value: Any) -> Persistence:
        found = _FORM.fullmatch(value) if isinstance(value, str) else None
        if found is None:
            raise cls.refused()
        _, for_good, burst, span = found.groups()
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
    def lasts_s(self) -> bool:
        """True if time limits it, not a number of hits."""
        return self.span_s > 0

    def holds(self, occasion: Occasion, met: Met) -> bool:
        return not (met.times and self.value == "once")

    def lasts(self, occasion: Occasion, met: Met) -> bool:
        """Tells if the last hit still goes on at this attempt."""
        if not met.times:
            return False
        return occasion.elapsed_s < met.since_s + self.span_s if self.span_s else met.in_a_row < self.hits

    def never(self, others: Mapping[str, Trigger]) -> str:
        most = others.get("max_times")
        if most is not None and self.hits > most.value:
            return f"persistence is '{self.value}', and max_times={most.value} ends it before"
        if most is not None and self.value == "once" and most.value > 1:
            return f"persistence is 'once', and max_times is {most.value}"
        return ""
