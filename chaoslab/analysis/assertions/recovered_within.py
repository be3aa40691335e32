"""Each outage is over in time."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import ClassVar

from chaoslab.analysis.assertion import Assertion, Bounds, Miss, Seen
from chaoslab.analysis.measures.incidents import incidents


@dataclass(frozen=True)
class RecoveredWithin(Assertion):
    """Each target that met a fault gives a right result at most `seconds` after that attempt began, without a repeated
    effect."""

    seconds: float
    tool: str = "*"
    bounds: ClassVar[Bounds] = {"seconds": (0, 1e15)}
    example = "{seconds: 10, tool: search}"

    def check(self, seen: Seen) -> Miss | None:
        found = [each for each in incidents(seen.history) if fnmatchcase(each.target, self.tool)]
        if not found:
            return Miss("no fault was met that anything could recover from")
        for each in found:
            if not each.recovered:
                return Miss(f"{each.target} never recovered from {each.fault} ({each.ending})")
            if each.duration_s > self.seconds:
                took = f"{each.target} took {each.duration_s:g} s to recover from {each.fault}"
                return Miss(f"{took}, at most {self.seconds:g} s were allowed")
        return None
