"""Runs the trials of a run and writes them to its folder, for the lab's agent and a user's agent alike."""

from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, TypeVar

from chaoslab.analysis.verdict.table import ENDED_WELL
from chaoslab.core import events
from chaoslab.execution.drawn import WrappedRun
from chaoslab.execution.spec import Executor, RunSpec, TrialResult, TrialSpec
from chaoslab.record.log import BufferedEvent, LogLost
from chaoslab.record.steering import RunSteering, obey_pause_and_stop
from chaoslab.worlds.virtual.run_writer import RunWriter

R = TypeVar("R", bound=TrialResult)


class NamedRun(Protocol):
    """A run, as far as its folder tells of it."""

    @property
    def name(self) -> str: ...
    @property
    def now(self) -> str: ...
    def make_run_started_event(self, trials: int) -> events.RunStarted: ...


@contextmanager
def open_run_folder(run: NamedRun, trials: int, folder: Path, *, keep: str = "all") -> Iterator[RunWriter]:
    """A context that writes the run's folder. The run ends as done, interrupted (Ctrl-C, or the iterator was closed) or
    broken. `keep`: see `RunOptions`. Raises LogLost: the folder cannot be written."""
    with RunWriter(folder, run.name, run.now, keep=keep) as book:
        book.write_start(run.make_run_started_event(trials))
        reason = "broken"
        try:
            yield book
            reason = "done"
        # Both are the end of a caller who has seen enough, and no fault of the run.
        except (KeyboardInterrupt, GeneratorExit):
            reason = "interrupted"
            raise
        except LogLost:
            reason = ""  # nothing more can be written
            raise
        finally:
            if reason:
                book.write_end(reason)


@dataclass(frozen=True)
class RunWithoutSwitchedOffFaults(WrappedRun[RunSpec[R]]):
    """The run without the faults that somebody has switched off meanwhile. `folder`: that of the run, which each
    process looks into before a trial."""

    folder: Path

    @contextmanager
    def open_runner(self) -> Iterator[Callable[[TrialSpec], R]]:
        with self.run.open_runner() as do:
            # Read before each trial, by the process that does it: a switch counts from the next one on.
            yield lambda spec: do(replace(spec, off=tuple(off)) if (off := RunSteering.read(self.folder).off) else spec)


def run_trials(
    run: RunSpec[R], trials: int | Sequence[int], *, executor: Executor, book: RunWriter | None = None
) -> Generator[R, None, None]:
    """Yields the result of each trial, in order, after writing it down. `trials`: how many, or their numbers from 0.
    Raises LogLost: it cannot be written. KeyboardInterrupt: the run is asked to stop (`record.steering`). Exceptions of
    the trials and of the executor pass through."""
    spent_usd = 0.0

    def iterate_specs() -> Iterator[TrialSpec]:
        for number in range(trials) if isinstance(trials, int) else trials:
            # Only where trials go one after the other is this the sum of all before it.
            yield TrialSpec(number, spent_usd if run.is_sequential else 0.0)

    # Absolute, since an agent may change the directory of the process that looks into it.
    steered_run = run if book is None else RunWithoutSwitchedOffFaults(run, book.folder.absolute())
    with closing(executor.map(steered_run, iterate_specs())) as trial_results:
        for result in trial_results:
            spent_usd = result.run_spent_usd
            if book is not None and book.keep == "all":
                book.write_trial(result.buffered_events, seconds=result.seconds, ok=result.ok)
                obey_pause_and_stop(book.folder)
            try:
                yield result
            finally:  # whoever takes it may rule that it did not end well
                if book is not None and book.keep != "all":
                    buffered = result.buffered_events
                    # What landed after the answer lies behind the trial's own seconds.
                    seconds = max([result.seconds, *(event.t for event in buffered)])
                    if not result.is_story_requested and result.outcome in ENDED_WELL:
                        buffered = replace_call_events_by_counts(buffered)
                    book.write_trial(buffered, seconds=seconds, ok=result.ok)
            if book is not None and book.keep != "all":
                obey_pause_and_stop(book.folder)


def replace_call_events_by_counts(buffered: Sequence[BufferedEvent]) -> list[BufferedEvent]:
    """The events of a trial with one that counts its calls and faults in the place of theirs."""
    calls: Counter[str] = Counter()
    faults_met: dict[str, Counter[str]] = defaultdict(Counter)
    remaining = []
    for event in buffered:
        kind = events.Event.kinds[event.kind]
        if kind is events.CallStarted:
            calls[event.fields["target"]] += 1
        elif kind is events.FaultWitnessed:
            faults_met[event.fields["fault"]][event.fields["target"]] += 1
        elif kind is events.PromptFinished:
            counts = events.StoryLeftOut(
                calls=dict(calls), met={fault: dict(targets) for fault, targets in faults_met.items()}
            )
            remaining.append(BufferedEvent.build(event.writer, event.t, event.trial, counts))
        if not issubclass(kind, (events.AttemptEvent, events.PromptAttempt)):
            remaining.append(event)
    return remaining
