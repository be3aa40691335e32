"""The agent makes at most so many attempts at calls."""

from __future__ import annotations

from dataclasses import dataclass

from chaoslab.analysis.assertions import Assertion, Miss, Seen


@dataclass(frozen=True)
class MaxCalls(Assertion):
    """At most `calls` attempts at the calls of `tool` (a name or a pattern), retries included."""

    calls: int
    tool: str = "*"
    example = "{calls: 10, tool: refund}"

    def check(self, seen: Seen) -> Miss | None:
        made = seen.started(self.tool)
        if len(made) <= self.calls:
            return None
        noun = "call" if len(made) == 1 else "calls"
        what = noun if self.tool == "*" else f"{noun} of {self.tool}"
        return Miss.at(f"{len(made)} {what}, at most {self.calls} were allowed", *(r for r, _ in made[self.calls :]))
