"""Runs the trials of a run and writes them to its folder, for the lab's agent and a user's agent alike."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Protocol, TypeVar

from chaoslab.core.events import RunStarted
from chaoslab.execution.spec import Executor, RunSpec, TrialResult, TrialSpec
from chaoslab.record.log import LogLost
from chaoslab.record.steering import obey
from chaoslab.worlds.virtual.run_writer import RunWriter

R = TypeVar("R", bound=TrialResult)


class Named(Protocol):
    """A run, as far as its folder tells of it."""

    @property
    def name(self) -> str: ...
    @property
    def now(self) -> str: ...
    def started(self, trials: int) -> RunStarted: ...


@contextmanager
def written(run: Named, trials: int, folder: Path) -> Iterator[RunWriter]:
    """A context that writes the run's folder. The run ends as done, interrupted (Ctrl-C, or the iterator was closed) or
    broken.

    Raises:
        LogLost: the folder cannot be written.
    """
    with RunWriter(folder, run.name, run.now) as book:
        book.begin(run.started(trials))
        reason = "broken"
        try:
            yield book
            reason = "done"
        except (KeyboardInterrupt, GeneratorExit):
            reason = "interrupted"
            raise
        except LogLost:
            reason = ""  # nothing more can be written
            raise
        finally:
            if reason:
                book.end(reason)


def results(
    run: RunSpec[R], trials: int | Sequence[int], *, executor: Executor, book: RunWriter | None = None
) -> Generator[R, None, None]:
    """Yields the result of each trial, in order, after writing it down. `trials`: how many, or their numbers from 0.

    Raises:
        LogLost: it cannot be written. KeyboardInterrupt: the run is asked to stop (`record.steering`).
            Exceptions of the trials and of the executor pass through.
    """
    spent_usd = 0.0

    def specs() -> Iterator[TrialSpec]:
        for number in range(trials) if isinstance(trials, int) else trials:
            yield TrialSpec(number, spent_usd if run.sequential else 0.0)

    with closing(executor.map(run, specs())) as done:
        for result in done:
            spent_usd = result.spent_usd
            if book is not None:
                book.add(result.kept, seconds=result.seconds, ok=result.ok)
                obey(book.folder)
            yield result
