"""Assertions on effects and the end state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from chaoslab.analysis.assertions import Assertion, FinishedTrial, Miss
from chaoslab.analysis.verdict import ledger
from chaoslab.analysis.verdict.ledger import FindingKind, how_often, told_of
from chaoslab.base.identity import canonical, is_idempotency_key
from chaoslab.base.jsonable import brief
from chaoslab.core.events import Effect, EndState
from chaoslab.record.lines import Record


@dataclass(frozen=True)
class EffectsEqual(Assertion):
    """The effects are exactly these, in any order: mappings as in `effects` of `lab.run`."""

    effects: Sequence[Mapping[str, Any]]
    example = "{effects: [{effect: refund, order: 17}]}"

    def check(self, seen: FinishedTrial) -> Miss | None:
        found = ledger.compare(list(self.effects), seen.effects())
        if not found:
            return None
        lines = [line for finding in found for line in finding.lines]
        return Miss("; ".join(finding.text for finding in found), tuple(lines))


@dataclass(frozen=True)
class NoDuplicateEffects(Assertion):
    """No two effects are alike: the same `effect` (a name or a pattern) with the same content, apart from an
    idempotency key."""

    effect: str = "*"
    example = "{effect: refund}"

    def check(self, seen: FinishedTrial) -> Miss | None:
        alike: dict[str, list[tuple[Record, Effect]]] = {}
        for record, event in seen.effects(self.effect):
            content = {
                key: value for key, value in event.content.items() if key != "id" and not is_idempotency_key(key)
            }
            alike.setdefault(canonical([event.target, event.effect, content]), []).append((record, event))
        for made in alike.values():
            if len(made) > 1:
                told = told_of(made[0][1].effect, made[0][1].content)
                return Miss.at_each(f"{told} {how_often(len(made))}", made)
        return None


@dataclass(frozen=True)
class NoEffectWithoutRequest(Assertion):
    """Each effect belongs to a call of the agent's at the same target."""

    effect: str = "*"
    example = "{effect: refund}"

    def check(self, seen: FinishedTrial) -> Miss | None:
        asked = {event.target for _, event in seen.started()}
        for record, event in seen.effects(self.effect):
            if event.target not in asked:
                return Miss.at(f"{told_of(event.effect, event.content)}, and {event.target} was not called", record)
        return None


@dataclass(frozen=True)
class NoFalseSuccess(Assertion):
    """The answer does not pass over something that was left undone, by the ledger or the end state."""

    example = "no_false_success"

    def check(self, seen: FinishedTrial) -> Miss | None:
        lost = [finding for finding in seen.verdict.evidence if finding.kind is FindingKind.LOST]
        hidden = any(f.kind is FindingKind.ADMISSION and "does not say so" in f.text for f in seen.verdict.evidence)
        if not lost or not hidden:
            return None
        lines = tuple(line for finding in seen.verdict.evidence for line in finding.lines)
        return Miss(f"{'; '.join(finding.text for finding in lost)}, and the answer does not say so", lines)


@dataclass(frozen=True)
class StateEquals(Assertion):
    """The value at `path` of the end state (keys and indices with dots, as in orders.17.status; "" for all of it) is
    `value`."""

    path: str
    value: Any
    example = "{path: orders.17.status, value: refunded}"

    def check(self, seen: FinishedTrial) -> Miss | None:
        ended = next(iter(seen.history.of(EndState, trial=seen.trial)), None)
        if ended is None:
            return Miss("no state was read: give state=")
        record, found = ended
        if found.error:
            return Miss.at(found.error, record)
        now = found.after
        for part in self.path.split(".") if self.path else ():
            if isinstance(now, dict) and part in now:
                now = now[part]
            elif isinstance(now, list) and part.isdecimal() and int(part) < len(now):
                now = now[int(part)]
            else:
                return Miss.at(f"the end state has no {self.path}", record)
        if now == self.value and isinstance(now, bool) == isinstance(self.value, bool):
            return None
        return Miss.at(
            f"{self.path or 'the end state'} is {brief(now, 120)} instead of {brief(self.value, 120)}", record
        )
