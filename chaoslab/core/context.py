"""The trial around one call, as a fault's story sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from chaoslab.base.clock import system

if TYPE_CHECKING:
    from chaoslab.core.exchange import Call, Reply


@dataclass(frozen=True, slots=True)
class PastAttempt:
    """One earlier attempt of the trial, as its caller saw it. `failed`: the kind of its failure if there was no
    reply. `true`: no fault had changed the call or the reply."""

    call: Call
    reply: Reply | None
    failed: str | None
    began_s: float
    ended_s: float
    true: bool = True


@dataclass(frozen=True, slots=True)
class TrialContext:
    """The trial around one call. It is rebuilt when a trial is run again, and nothing of it outlives the trial.

    `turn`: the turn of the conversation, from 1. `elapsed_s`: seconds since the trial began. `spent`: the use before
    this call (tokens, cost_usd, calls, seconds). `memory`: the injection's own, empty at its first call and kept until
    the trial ends. `earlier`: the trial's attempts that are over, oldest first, for faults that look back
    (`Fault.looks_back`).
    """

    trial: str = ""
    turn: int = 1
    elapsed_s: float = 0.0
    spent: Mapping[str, float] = field(default_factory=dict)
    memory: dict[str, Any] = field(default_factory=dict)
    earlier: Sequence[PastAttempt] = ()

    def utc(self) -> datetime:
        """The moment by the clock of the world."""
        return system.utc()
