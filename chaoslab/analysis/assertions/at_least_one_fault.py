"""A fault is met."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

from chaoslab.analysis.assertions import Assertion, Miss, Seen
from chaoslab.core.events import FaultWitnessed


@dataclass(frozen=True)
class AtLeastOneFault(Assertion):
    """At least one `fault` (a name or a pattern) is witnessed at `target` (a name or a pattern)."""

    fault: str = "*"
    target: str = "*"
    example = "{fault: lost_reply}"

    def check(self, seen: Seen) -> Miss | None:
        for _, event in seen.of(FaultWitnessed):
            if fnmatchcase(event.fault, self.fault) and fnmatchcase(event.target, self.target):
                return None
        where = "" if self.target == "*" else f" at {self.target}"
        return Miss(f"no {'fault' if self.fault == '*' else self.fault} was witnessed{where}")
