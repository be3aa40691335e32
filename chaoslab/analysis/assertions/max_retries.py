"""No request is tried too often."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chaoslab.analysis.assertions import Assertion, Bounds, Miss, Seen


@dataclass(frozen=True)
class MaxRetries(Assertion):
    """Each request to `tool` (a name or a pattern) is tried again at most `retries` times. Attempts that
    the agent gave up are none."""

    retries: int
    tool: str = "*"
    bounds: ClassVar[Bounds] = {"retries": (0, 10**9)}
    example = "{retries: 2}"

    def check(self, seen: Seen) -> Miss | None:
        for record, event, number in seen.tries(self.tool):
            if number > self.retries + 1:
                again = number - 1
                return Miss.at(
                    f"{event.tool} {event.request} was tried again {again} times, at most {self.retries} were allowed",
                    record,
                )
        return None
