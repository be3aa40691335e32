"""No effect happens twice."""

from __future__ import annotations

from dataclasses import dataclass

from chaoslab.analysis.assertion import Assertion, Miss, Seen
from chaoslab.analysis.ledger import told_of
from chaoslab.base.identity import IDEMPOTENCY_KEY, canonical
from chaoslab.record.lines import Record


@dataclass(frozen=True)
class NoDuplicateEffects(Assertion):
    """No two effects are alike: the same `effect` (a name or a pattern) with the same content, apart from an
    idempotency key."""

    effect: str = "*"
    example = "{effect: refund}"

    def check(self, seen: Seen) -> Miss | None:
        first: dict[str, Record] = {}
        for record, event in seen.effects(self.effect):
            content = {key: value for key, value in event.content.items() if key not in (IDEMPOTENCY_KEY, "id")}
            key = canonical([event.target, event.effect, content])
            if key in first:
                return Miss.at(f"{told_of(event.effect, event.content)} twice", first[key], record)
            first[key] = record
        return None
