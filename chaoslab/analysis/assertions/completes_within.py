"""The trial is over in time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chaoslab.analysis.assertions import Assertion, Bounds, Miss, Seen


@dataclass(frozen=True)
class CompletesWithin(Assertion):
    """The trial takes at most `seconds`, in its world's time."""

    seconds: float
    bounds: ClassVar[Bounds] = {"seconds": (0, 1e15)}
    example = "{seconds: 60}"

    def check(self, seen: Seen) -> Miss | None:
        if seen.end is None:
            return Miss("the trial did not end")
        record, end = seen.end
        if end.duration_s <= self.seconds:
            return None
        return Miss.at(f"it took {end.duration_s:g} s, at most {self.seconds:g} s were allowed", record)
