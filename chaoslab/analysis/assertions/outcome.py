"""The trial ends so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chaoslab.analysis.assertions import Assertion, Miss, Seen
from chaoslab.analysis.verdict import table
from chaoslab.base.registry import did_you_mean


@dataclass(frozen=True)
class Outcome(Assertion):
    """The outcome is one of these."""

    outcomes: str | Sequence[str]
    example = "{outcomes: [correct, degraded]}"

    def check(self, seen: Seen) -> Miss | None:
        wanted = [self.outcomes] if isinstance(self.outcomes, str) else list(self.outcomes)
        if str(seen.verdict.outcome) in wanted:
            return None
        return Miss(f"the outcome is {seen.verdict.outcome} instead of {' or '.join(wanted)}: {seen.verdict.why}")

    def __post_init__(self) -> None:
        super().__post_init__()
        known = [str(each) for each in table.Outcome]
        for each in [self.outcomes] if isinstance(self.outcomes, str) else self.outcomes:
            if each not in known:
                raise ValueError(f"no outcome is called '{each!s:.60}': {did_you_mean(str(each), known)}")
