"""A tool is called."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chaoslab.analysis.assertions import Assertion, Bounds, Miss, Seen


@dataclass(frozen=True)
class Called(Assertion):
    """`tool` (a name or a pattern) is called, `times` times if that is given. Further attempts at a request do not
    count."""

    tool: str
    times: int = 0
    bounds: ClassVar[Bounds] = {"times": (0, 10**9)}
    example = "{tool: refund, times: 1}"

    def check(self, seen: Seen) -> Miss | None:
        made = [(record, event) for record, event in seen.started(self.tool) if event.attempt == 1]
        if (len(made) == self.times) if self.times else made:
            return None
        wanted = f"{self.times} times" if self.times else "at least once"
        return Miss.at(
            f"{self.tool} was called {len(made)} times, it should be {wanted}", *(record for record, _ in made)
        )
