"""A run as a value: what has to be done, trial by trial, and what comes of each.

`RunSpec` → `TrialSpec` → `TrialResult`. All three can be sent to another process; an `Executor` says where the trials are done.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from chaoslab.analysis.judge import Outcome
from chaoslab.core.events import RunStarted
from chaoslab.record.log import BufferedEvent

S = TypeVar("S")
S_contra = TypeVar("S_contra", contravariant=True)
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


@dataclass(frozen=True)
class TrialSpec:
    """One trial to be done: its number in the run, from 0, and what the run has spent before it."""

    number: int
    spent_usd: float = 0.0


class TrialResult(Protocol):
    """What came of one trial."""

    @property
    def seconds(self) -> float:
        """How long it took, in its world's time."""

    @property
    def ok(self) -> bool:
        """Whether it ended with an answer, right or wrong."""

    @property
    def outcome(self) -> Outcome: ...
    @property
    def witnessed(self) -> int:
        """Faults that were witnessed."""

    @property
    def spent_usd(self) -> float:
        """What the run had spent when the trial was over."""

    @property
    def kept(self) -> list[BufferedEvent]:
        """Its events, in the order of their happening."""


class Work(Protocol[S_contra, R_co]):
    """What an executor needs of a run: picklable, and the same in any process."""

    def named(self, spec: S_contra, /) -> str:
        """What people call that part of the work."""

    def opened(self) -> AbstractContextManager[Callable[[S_contra], R_co]]:
        """Gives what does one part of it, in the process that does it."""


class RunSpec(Work[TrialSpec, R_co], Protocol[R_co]):
    """A run of the lab's own agent (`LabSpec`) or of a user's (`AgentSpec`)."""

    @property
    def name(self) -> str:
        """The run's name."""

    @property
    def now(self) -> str:
        """What the wall clock says when the first trial begins, in ISO 8601."""

    @property
    def sequential(self) -> bool:
        """Whether a trial depends on what those before it spent, so that they cannot be done side by side."""

    def started(self, trials: int) -> RunStarted:
        """The first event of a run of so many trials: with it alone the run can be made again, where that is possible."""


class Executor(Protocol):
    """Where work is done: in this process, or in several."""

    def map(self, work: Work[S, R], specs: Iterable[S]) -> Generator[R, Any, None]:
        """The result of each spec, in the specs' order. What one of them raises is raised here, after the results before it."""
