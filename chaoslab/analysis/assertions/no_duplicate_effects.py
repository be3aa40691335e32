"""No effect happens twice."""

from __future__ import annotations

from dataclasses import dataclass

from chaoslab.analysis.assertions import Assertion, Miss, Seen
from chaoslab.analysis.verdict.ledger import how_often, told_of
from chaoslab.base.identity import IDEMPOTENCY_KEY, canonical
from chaoslab.core.events import Effect
from chaoslab.record.lines import Record


@dataclass(frozen=True)
class NoDuplicateEffects(Assertion):
    """No two effects are alike: the same `effect` (a name or a pattern) with the same content, apart from an
    idempotency key."""

    effect: str = "*"
    example = "{effect: refund}"

    def check(self, seen: Seen) -> Miss | None:
        alike: dict[str, list[tuple[Record, Effect]]] = {}
        for record, event in seen.effects(self.effect):
            content = {key: value for key, value in event.content.items() if key not in (IDEMPOTENCY_KEY, "id")}
            alike.setdefault(canonical([event.target, event.effect, content]), []).append((record, event))
        for made in alike.values():
            if len(made) > 1:
                told = told_of(made[0][1].effect, made[0][1].content)
                return Miss.at(f"{told} {how_often(len(made))}", *(record for record, _ in made))
        return None
