"""A tool is not called."""

from __future__ import annotations

from dataclasses import dataclass

from chaoslab.analysis.assertions import Assertion, Miss, Seen


@dataclass(frozen=True)
class NotCalled(Assertion):
    """`tool` (a name or a pattern) is never called."""

    tool: str
    example = "{tool: delete_*}"

    def check(self, seen: Seen) -> Miss | None:
        made = seen.started(self.tool)
        return (
            Miss.at(f"{made[0][1].tool} was called {len(made)} times", *(record for record, _ in made))
            if made
            else None
        )
