"""Assertions on effects and the end state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from chaoslab.analysis.assertions import Assertion, FinishedTrial, Miss
from chaoslab.analysis.verdict import ledger
from chaoslab.analysis.verdict.ledger import FindingKind, describe_effect, describe_repetition_count
from chaoslab.base.identity import canonical, is_idempotency_key
from chaoslab.base.jsonable import render_brief
from chaoslab.core.events import Effect, EndState
from chaoslab.record.lines import Record


@dataclass(frozen=True)
class EffectsEqual(Assertion):
    """The effects are exactly these, in any order: mappings as in `effects` of `lab.run`."""

    effects: Sequence[Mapping[str, Any]]
    example = "{effects: [{effect: refund, order: 17}]}"

    def check(self, trial: FinishedTrial) -> Miss | None:
        findings = ledger.compare_effects(list(self.effects), trial.effects())
        if not findings:
            return None
        lines = [line for finding in findings for line in finding.lines]
        return Miss("; ".join(finding.text for finding in findings), tuple(lines))


@dataclass(frozen=True)
class NoDuplicateEffects(Assertion):
    """No two effects are alike: the same `effect` (a name or a pattern) with the same content, apart from an
    idempotency key."""

    effect: str = "*"
    example = "{effect: refund}"

    def check(self, trial: FinishedTrial) -> Miss | None:
        groups: dict[str, list[tuple[Record, Effect]]] = {}
        for record, event in trial.effects(self.effect):
            content = {
                # An id of its own would make any two effects unlike.
                key: value
                for key, value in event.content.items()
                if key != "id" and not is_idempotency_key(key)
            }
            groups.setdefault(canonical([event.target, event.effect, content]), []).append((record, event))
        for duplicates in groups.values():
            if len(duplicates) > 1:
                description = describe_effect(duplicates[0][1].effect, duplicates[0][1].content)
                return Miss.from_located_events(
                    f"{description} {describe_repetition_count(len(duplicates))}", duplicates
                )
        return None


@dataclass(frozen=True)
class NoEffectWithoutRequest(Assertion):
    """Each effect belongs to a call of the agent's at the same target."""

    effect: str = "*"
    example = "{effect: refund}"

    def check(self, trial: FinishedTrial) -> Miss | None:
        called_targets = {event.target for _, event in trial.started()}
        for record, event in trial.effects(self.effect):
            if event.target not in called_targets:
                return Miss.from_records(
                    f"{describe_effect(event.effect, event.content)}, and {event.target} was not called", record
                )
        return None


@dataclass(frozen=True)
class NoFalseSuccess(Assertion):
    """The answer does not pass over something that was left undone, by the ledger or the end state."""

    example = "no_false_success"

    def check(self, trial: FinishedTrial) -> Miss | None:
        lost = [finding for finding in trial.verdict.evidence if finding.kind is FindingKind.LOST]
        hidden = any(f.kind is FindingKind.ADMISSION and "does not say so" in f.text for f in trial.verdict.evidence)
        if not lost or not hidden:
            return None
        lines = tuple(line for finding in trial.verdict.evidence for line in finding.lines)
        return Miss(f"{'; '.join(finding.text for finding in lost)}, and the answer does not say so", lines)


@dataclass(frozen=True)
class StateEquals(Assertion):
    """The value at `path` of the end state (keys and indices with dots, as in orders.17.status; "" for all of it) is
    `value`."""

    path: str
    value: Any
    example = "{path: orders.17.status, value: refunded}"

    def check(self, trial: FinishedTrial) -> Miss | None:
        ended = next(iter(trial.history.find_events(EndState, trial=trial.trial)), None)
        if ended is None:
            return Miss("no state was read: give state=")
        record, end_state = ended
        if end_state.error:
            return Miss.from_records(end_state.error, record)
        value = end_state.after
        for key in self.path.split(".") if self.path else ():
            if isinstance(value, dict) and key in value:
                value = value[key]
            elif isinstance(value, list) and key.isdecimal() and int(key) < len(value):
                value = value[int(key)]
            else:
                return Miss.from_records(f"the end state has no {self.path}", record)
        # True is 1 to Python, and not in JSON.
        if value == self.value and isinstance(value, bool) == isinstance(self.value, bool):
            return None
        return Miss.from_records(
            f"{self.path or 'the end state'} is {render_brief(value, 120)} instead of {render_brief(self.value, 120)}",
            record,
        )
