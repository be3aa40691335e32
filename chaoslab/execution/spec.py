"""A run as a value: its trials, and the result of each. `RunSpec` → `TrialSpec` → `TrialResult`. All three can be sent
to another process; an `Executor` carries out the trials."""

from collections.abc import Callable, Generator, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from chaoslab.analysis.verdict.table import Outcome
from chaoslab.core.events import RunStarted
from chaoslab.record.log import BufferedEvent

REAL_LIMIT_S = 600.0
"""The most seconds of real time for a trial, if nothing else is said."""
INVALID_RATE = 0.05
"""The share of trials that may be invalid if none is stated: none of ten, ten of two hundred."""


def is_single_process(world: str | None) -> bool:
    """Tells if all parts of the lab in this world are in the process that runs it."""
    return world == "virtual"


S = TypeVar("S")
S_contra = TypeVar("S_contra", contravariant=True)
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class ProcessCrashed(Exception):
    """An agent's process ended before its trial did; the message has the ending."""


class AgentKilled(Exception):
    """A fault killed the agent's process, and nothing goes on; the message has the place."""


@dataclass(frozen=True)
class TrialSpec:
    """One trial to run: its number in the run, from 0, and the run's spending before it. `stopped`: the reason why it
    is not run but told as hung: it was run, and ended from outside. `crashed`: the ending of its process, which it
    brought about itself, so it is told as failed. `off`: injections that hit nothing in it."""

    number: int
    spent_usd: float = 0.0
    stopped: str = ""
    off: tuple[str, ...] = ()
    crashed: str = ""


class TrialResult(Protocol):
    """The result of one trial."""

    @property
    def seconds(self) -> float:
        """The duration in seconds, in the world's time."""

    @property
    def ok(self) -> bool:
        """True if the trial ended with an answer, right or wrong."""

    @property
    def outcome(self) -> Outcome: ...
    @property
    def witnessed(self) -> int:
        """The number of faults that were witnessed."""

    @property
    def run_spent_usd(self) -> float:
        """The run's spending at the end of the trial, in dollars."""

    @property
    def is_story_requested(self) -> bool:
        """True if somebody ruled that the trial did not end well, whatever its outcome, so that its story is kept."""

    @property
    def buffered_events(self) -> list[BufferedEvent]:
        """The trial's events, in the order they happened."""


class Work(Protocol[S_contra, R_co]):
    """Work for an executor: picklable, and equal in every process."""

    def get_work_item_name(self, spec: S_contra, /) -> str:
        """The name of one part of the work, as users know it."""

    def open_runner(self) -> AbstractContextManager[Callable[[S_contra], R_co]]:
        """A context that gives a function which carries out one part of the work in this process."""


class RunSpec(Work[TrialSpec, R_co], Protocol[R_co]):
    """A run of the lab's own agent (`LabSpec`) or of a user's (`AgentSpec`)."""

    @property
    def name(self) -> str:
        """The run's name."""

    @property
    def now(self) -> str:
        """The wall clock's time at the start of the first trial, in ISO 8601."""

    @property
    def is_sequential(self) -> bool:
        """True if a trial depends on the spending of earlier ones; trials then cannot run in parallel."""

    def make_run_started_event(self, trials: int) -> RunStarted:
        """The first event of a run with that many trials. If a replay is possible, this event is enough for it."""


class Executor(Protocol):
    """An executor of work: in this process, or in several."""

    def map(self, work: Work[S, R], specs: Iterable[S]) -> Generator[R, Any, None]:
        """Yields the result of each spec, in order. An exception of a spec is raised after the results before it."""
