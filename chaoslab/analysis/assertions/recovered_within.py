"""Each request that met a fault recovers in time."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import ClassVar

from chaoslab.analysis.assertions import Assertion, Bounds, Miss, Seen
from chaoslab.analysis.measures.incidents import HARMED, Ending, how_bad, incidents


@dataclass(frozen=True)
class RecoveredWithin(Assertion):
    """Each request that met a fault gets a right result at most `seconds` after that attempt began, without a repeated
    effect. A trial without a fault that anything could recover from is a miss."""

    seconds: float
    tool: str = "*"
    bounds: ClassVar[Bounds] = {"seconds": (0, 1e15)}
    example = "{seconds: 10, tool: search}"

    def check(self, seen: Seen) -> Miss | None:
        found = [each for each in incidents(seen.history) if fnmatchcase(each.target, self.tool)]
        if not found:
            return Miss("no fault was met that anything could recover from")
        for each in sorted(found, key=how_bad, reverse=True):
            request = f"request {each.request} to {each.target}"
            if each.ending is Ending.HARM:
                return Miss(f"{request} recovered from {each.fault} with harm: {HARMED}")
            if not each.recovered:
                return Miss(f"{request} never recovered from {each.fault}")
            if each.duration_s > self.seconds:
                took = f"{request} took {each.duration_s:g} s to recover from {each.fault}"
                return Miss(f"{took}, at most {self.seconds:g} s were allowed")
        return None
