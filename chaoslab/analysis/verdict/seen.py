"""The events of a trial that a verdict depends on, and the same trial without faults, which it is held against."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from sys import intern
from typing import Any, NamedTuple, TypeVar

from chaoslab.core.events import (
    AgentDied,
    AgentResumed,
    AnswerRead,
    CallDisturbed,
    CallFinished,
    Effect,
    EndState,
    Event,
    EventRepeated,
    FaultArmed,
    FaultHealed,
    FaultHeldBack,
    FaultInjected,
    FaultUnreached,
    FaultWitnessed,
    GroundLost,
    PromptAttempt,
    PromptFinished,
    PromptStarted,
    TurnFinished,
    TurnStarted,
    TwinReordered,
    UserStopped,
)
from chaoslab.record.history import History
from chaoslab.record.lines import Record

E = TypeVar("E", bound=Event)

JUDGED = (
    AgentDied,
    AgentResumed,
    AnswerRead,
    CallDisturbed,
    CallFinished,
    Effect,
    EndState,
    EventRepeated,
    FaultArmed,
    FaultHealed,
    FaultHeldBack,
    FaultInjected,
    FaultUnreached,
    FaultWitnessed,
    GroundLost,
    PromptAttempt,
    PromptFinished,
    PromptStarted,
    TurnFinished,
    TurnStarted,
    TwinReordered,
    UserStopped,
)
"""The kinds of events that a verdict depends on."""


class TrialEvents:
    """The events of one trial that a verdict depends on, by kind and in time order. `whole`: the history with the ends
    of all its calls, if those by kind are the failed ones alone."""

    def __init__(self, trial: str, whole: History | None = None) -> None:
        self.by_kind: dict[type[Event], list[tuple[Record, Event]]] = {}
        self.trial, self.whole = trial, whole

    def find_events(self, kind: type[E]) -> Sequence[tuple[Record, E]]:
        """The events of one kind, each with its line's envelope."""
        return self.by_kind.get(kind, ())  # type: ignore[return-value]

    def list_call_ends(self) -> Iterable[tuple[Record, CallFinished]]:
        """The ends of all calls."""
        return self.whole.find_events(CallFinished, trial=self.trial) if self.whole else self.find_events(CallFinished)

    def find_first(self, kind: type[E]) -> tuple[Record, E] | None:
        entries = self.find_events(kind)
        return entries[0] if entries else None


def log_line_key(record: Record) -> tuple[str, int]:
    """The line of a log that a finding shows."""
    return intern(record.writer), record.seq


ParallelCall = tuple[str, str, int]
"""A call that was under way together with another: its target, its tool and the number of its request."""


class TwinRead(NamedTuple):
    """A value that the trial without faults read. `arguments`: as text. `requests`: the numbers of its requests.
    `reply`: the start of the last right reply. `earlier`: those that were replied before, and are others."""

    target: str
    tool: str
    arguments: str
    requests: tuple[int, ...]
    reply: str
    earlier: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[str, str, str]:
        """The target, the tool and the arguments."""
        return self.target, self.tool, self.arguments


@dataclass(frozen=True)
class Twin:
    """The results of the same trial without faults, for a comparison. `answer`: None if it cannot be compared.
    `seconds`: in the world's time; None if it cannot be compared. `calls`: the number of attempts. `effects`: the
    effects, as those that must happen again, if nothing else was stated about the trial. `asked`: digests of what
    scripted models were asked. `said`: the answer, whatever it is compared with. `effect_names`, `call_names`,
    `reads`: its effects and calls as texts, and its reads, to find what the answer rests on. `turns`: the answers of a
    conversation. `failed`: the targets of which a call failed. `parallel`: its calls that were made side by side."""

    answer: str | None
    seconds: float | None
    calls: int
    effects: Sequence[Mapping[str, Any]] | None = None
    asked: Sequence[str] = ()
    said: str = ""
    effect_names: Sequence[str] = ()
    call_names: Sequence[str] = ()
    reads: Sequence[TwinRead] = ()
    turns: Sequence[str] = ()
    failed: Sequence[str] = ()
    parallel: Sequence[ParallelCall] = ()
