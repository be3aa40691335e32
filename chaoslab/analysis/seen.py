"""The events of a trial that a verdict depends on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from sys import intern
from typing import TypeVar

from chaoslab.core.events import (
    CallDisturbed,
    CallFinished,
    Effect,
    EndState,
    Event,
    FaultArmed,
    FaultHealed,
    FaultInjected,
    FaultUnreached,
    FaultWitnessed,
    PromptAttempt,
    PromptFinished,
    PromptStarted,
    TurnFinished,
    TurnStarted,
)
from chaoslab.record.lines import Record

E = TypeVar("E", bound=Event)

JUDGED = (
    CallDisturbed, CallFinished, Effect, EndState, FaultArmed, FaultHealed, FaultInjected, FaultUnreached,
    FaultWitnessed, PromptAttempt, PromptFinished, PromptStarted, TurnFinished, TurnStarted,
)  # fmt: skip
"""The kinds of events that a verdict depends on."""


class Seen:
    """The events of one trial that a verdict depends on, by kind and in time order. `calls`: gives the ends of all
    calls, if those by kind are the failed ones alone."""

    def __init__(self, calls: Callable[[], Iterable[tuple[Record, CallFinished]]] | None = None) -> None:
        self.by_kind: dict[type[Event], list[tuple[Record, Event]]] = {}
        self.calls = calls or partial(self.of, CallFinished)

    def of(self, kind: type[E]) -> Sequence[tuple[Record, E]]:
        """The events of one kind, each with its line's envelope."""
        return self.by_kind.get(kind, ())  # type: ignore[return-value]

    def first(self, kind: type[E]) -> tuple[Record, E] | None:
        found = self.of(kind)
        return found[0] if found else None


def line(record: Record) -> tuple[str, int]:
    """The line of a log that a finding shows."""
    return intern(record.writer), record.seq
