"""Nothing happens unasked."""

from __future__ import annotations

from dataclasses import dataclass

from chaoslab.analysis.assertions import Assertion, Miss, Seen
from chaoslab.analysis.verdict.ledger import told_of


@dataclass(frozen=True)
class NoEffectWithoutRequest(Assertion):
    """Each effect belongs to a call of the agent's at the same target."""

    effect: str = "*"
    example = "{effect: refund}"

    def check(self, seen: Seen) -> Miss | None:
        asked = {event.target for _, event in seen.started()}
        for record, event in seen.effects(self.effect):
            if event.target not in asked:
                return Miss.at(f"{told_of(event.effect, event.content)}, and {event.target} was not called", record)
        return None
