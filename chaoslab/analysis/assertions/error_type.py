"""The trial ends with this kind of error."""

from __future__ import annotations

from dataclasses import dataclass

from chaoslab.analysis.assertions import Assertion, Miss, Seen


@dataclass(frozen=True)
class ErrorType(Assertion):
    """The trial ends with this kind of error: none, agent, budget, hung, or that of the lab's agent."""

    kind: str
    example = "{kind: none}"

    def check(self, seen: Seen) -> Miss | None:
        if seen.end is None:
            return Miss("the trial did not end")
        record, end = seen.end
        return (
            None
            if end.error_type == self.kind
            else Miss.at(f"it ended with {end.error_type} instead of {self.kind}", record)
        )
