"""A run whose trials are judged in the process that does them, so that the process which takes them only counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from chaoslab.core.events import RunStarted
from chaoslab.execution.agents.case import AgentResult
from chaoslab.execution.spec import RunSpec, TrialSpec


@dataclass(frozen=True)
class JudgedRun:
    """The run with results that are judged. `lines`: the lines of the run's log are spelled out too."""

    run: RunSpec[AgentResult]
    lines: bool

    @property
    def name(self) -> str:
        return self.run.name

    @property
    def now(self) -> str:
        return self.run.now

    @property
    def sequential(self) -> bool:
        return self.run.sequential

    def named(self, spec: TrialSpec) -> str:
        return self.run.named(spec)

    def started(self, trials: int) -> RunStarted:
        return self.run.started(trials)

    @contextmanager
    def opened(self) -> Iterator[Callable[[TrialSpec], AgentResult]]:
        with self.run.opened() as do:
            yield lambda spec: do(spec).judged(lines=self.lines)
