"""A run whose trials each have a plan of their own, as where values are drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Protocol, TypeVar

from chaoslab.core.events import RunStarted
from chaoslab.core.limits import Limits
from chaoslab.core.plan import Injection, Plan
from chaoslab.execution.spec import TrialSpec

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


@dataclass(frozen=True)
class DrawnPlan:
    """The plan of one trial. `values`: those that were drawn for it, by name. `waits`: the seconds before a turn of its
    conversation, by the turn's number, where they were drawn. `order`: see `RunOptions.order`; None: the run's own.
    `limits`: beside those of the run."""

    injections: tuple[Injection, ...]
    values: Mapping[str, Any] = field(default_factory=dict)
    waits: Mapping[int, float] = field(default_factory=dict)
    order: Mapping[int, Sequence[str]] | None = None
    limits: tuple[Limits, ...] = ()

    def apply_to_plan(self, plan: Plan) -> Plan:
        """The plan of the trial, by that of its run."""
        return replace(plan, injections=self.injections, limits=plan.limits + self.limits)


class NamedRun(Protocol):
    """A run, but for how its trials are done."""

    @property
    def name(self) -> str: ...
    @property
    def now(self) -> str: ...
    @property
    def is_sequential(self) -> bool: ...
    def get_work_item_name(self, spec: TrialSpec, /) -> str: ...
    def make_run_started_event(self, trials: int) -> RunStarted: ...


class RedrawableRun(NamedRun, Protocol[R_co]):
    """A run whose trials may each have a plan of their own."""

    def open_varied_runner(self) -> AbstractContextManager[Callable[[DrawnPlan, TrialSpec], R_co]]:
        """A context that gives a function which runs a trial with such a plan in this process. What all trials share
        is made once; no trial leaves anything to the next."""


N = TypeVar("N", bound=NamedRun)


@dataclass(frozen=True)
class WrappedRun(Generic[N]):
    """A run of the same name around another, whose trials it does otherwise."""

    run: N

    @property
    def name(self) -> str:
        return self.run.name

    @property
    def now(self) -> str:
        return self.run.now

    @property
    def is_sequential(self) -> bool:
        return self.run.is_sequential

    def get_work_item_name(self, spec: TrialSpec) -> str:
        return self.run.get_work_item_name(spec)

    def make_run_started_event(self, trials: int) -> RunStarted:
        return self.run.make_run_started_event(trials)


@dataclass(frozen=True)
class DrawnRun(WrappedRun[RedrawableRun[R]]):
    """The run with the plan that `drawn` gives for each trial, by its number. A trial depends on its number
    alone, so the trials may be done in any process."""

    drawn: Callable[[int], DrawnPlan]

    @contextmanager
    def open_runner(self) -> Iterator[Callable[[TrialSpec], R]]:
        """A context that gives a function which runs one of the trials in this process."""

        with self.run.open_varied_runner() as trial:
            yield lambda spec: trial(self.drawn(spec.number), spec)
