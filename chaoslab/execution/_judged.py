"""A run whose trials are judged in the process that does them, so that the process which takes them only counts."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from chaoslab.execution.agents._case import AgentResult
from chaoslab.execution.drawn import Around
from chaoslab.execution.spec import RunSpec, TrialSpec


@dataclass(frozen=True)
class JudgedRun(Around[RunSpec[AgentResult]]):
    """The run with results that are judged. `lines`: the lines of the run's log are spelled out too."""

    lines: bool

    @contextmanager
    def opened(self) -> Iterator[Callable[[TrialSpec], AgentResult]]:
        with self.run.opened() as do:
            yield lambda spec: do(spec).judged(lines=self.lines)
