"""Most calls are good: right, and in time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chaoslab.analysis.assertions import Assertion, Bounds, Miss, Seen
from chaoslab.core.events import CallFinished


@dataclass(frozen=True)
class Slo(Assertion):
    """At least `share` of the calls of `tool` (a name or a pattern) succeed within `within_s` seconds, each attempt
    counted that the agent did not give up. A trial without such a call is a miss."""

    share: float
    within_s: float = 1e9
    tool: str = "*"
    bounds: ClassVar[Bounds] = {"share": (0, 1), "within_s": (0, 1e15)}
    example = "{share: 0.9, within_s: 2, tool: search}"

    def check(self, seen: Seen) -> Miss | None:
        ended = seen.ended(self.tool)
        if not ended:
            return Miss(f"there was no call{'' if self.tool == '*' else f' of {self.tool}'}")
        bad = [record for record, event, _ in ended if not self.good(event)]
        good = 1 - len(bad) / len(ended)
        if good >= self.share:
            return None
        return Miss.at(f"{good:.0%} of {len(ended)} calls were good, at least {self.share:.0%} were asked for", *bad)

    def good(self, event: CallFinished) -> bool:
        """True if the call succeeded, in time."""
        return event.ok and event.duration_s <= self.within_s
