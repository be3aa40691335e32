"""The folder of an exploration: a run's logs, in which each trial tells what was tried in it. So it can be read like
any run, and an exploration that was broken off goes on where it was."""

from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from chaoslab.base.identity import make_nth_trial_id
from chaoslab.core.events import RunStarted, VariationTried
from chaoslab.execution.drawn import RedrawableRun
from chaoslab.execution.exploring import Subject
from chaoslab.execution.pipeline import open_run_folder
from chaoslab.execution.trial import Trial
from chaoslab.record import provenance
from chaoslab.record.history import History
from chaoslab.record.log import BufferedEvent
from chaoslab.record.runs import Run
from chaoslab.record.steering import obey_pause_and_stop
from chaoslab.search.variation import TriedVariation


@dataclass(frozen=True)
class _ExploredRun:
    """The run of an exploration, whose log tells the code that it was made with."""

    spec: RedrawableRun[Any]

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def now(self) -> str:
        return self.spec.now

    def make_run_started_event(self, trials: int) -> RunStarted:
        run_started = self.spec.make_run_started_event(trials)
        return replace(run_started, code={**provenance.collect_versions(), **run_started.code})


class SearchJournal:
    """Writes the trials of an exploration into a new run of `logs`. `recalled`: what came of those of an earlier one.
    Raises ValueError: the earlier one is of another agent, seed or version; the message is one line; LogLost: nothing
    can be written."""

    def __init__(self, subject: Subject, logs: str | Path | None, resume: str | Path | None) -> None:
        spec = _ExploredRun(subject.run)
        self._spec, self._stack, self._number = spec, ExitStack(), 0
        self.folder: Path | None = None
        self.recalled: list[TriedVariation] = [] if resume is None else list(_read_tried_trials(spec, Path(resume)))
        if logs is not None:
            run_folder = Run.create(Path(logs), now=spec.now, name=spec.name)
            run_folder.link_as_latest()
            self.folder = run_folder.folder
            self._book = self._stack.enter_context(open_run_folder(spec, 0, run_folder.folder))
            # What goes on may be broken off once more, so this folder alone has to hold all that was tried.
            for tried in self.recalled:
                self._write_tried_event(tried)

    def add_trial(self, tried: TriedVariation, trial: Trial) -> str:
        """Writes a trial, with what was tried in it; returns its key, empty without a folder. Raises KeyboardInterrupt:
        the run is asked to stop (`record.steering`)."""
        if self.folder is None:
            return ""
        key = self._make_next_trial_key()
        # Variations share the number of the trial that they vary, and with it a key; in a log each needs its own.
        buffered = [event._replace(trial=key) for event in trial._result.buffered_events]
        buffered.append(
            BufferedEvent.build(buffered[0].writer, buffered[-1].t, key, VariationTried(tried=tried.to_json()))
        )
        self._book.write_trial(buffered, seconds=trial.seconds, ok=trial._result.ok)
        obey_pause_and_stop(self.folder)
        return key

    def _write_tried_event(self, tried: TriedVariation) -> None:
        """Writes what came of a trial whose own lines stand in the log that is resumed."""
        self._book.write_event(VariationTried(tried=tried.to_json()))

    def _make_next_trial_key(self) -> str:
        self._number += 1
        return make_nth_trial_id(self._spec.name, self._number - 1, 1).key

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.__exit__(*error)  # type: ignore[arg-type]


def _read_tried_trials(spec: _ExploredRun, folder: Path) -> list[TriedVariation]:
    try:
        history = History.read(folder)
    except FileNotFoundError as error:
        raise ValueError(f"{error}: give the folder of an exploration") from None
    started = history.find_first_event(RunStarted)
    if started is None:
        raise ValueError(f"{folder} holds no run: give the folder of an exploration")
    tried_data = [event.tried for _, event in history.find_events(VariationTried)]
    if not tried_data:
        raise ValueError(f"{folder} holds a run that is no exploration")
    own_start = spec.make_run_started_event(0)
    name = next(iter(history.records)).run
    # Part by part, since the run's name, a hash of them all, would not say which one differs.
    for field_name, recorded, current in (
        ("seed", started.seed, own_start.seed),
        ("agent", started.model, own_start.model),
    ):
        if recorded != current:
            raise ValueError(f"{folder} cannot be resumed: its {field_name} is {recorded}, and here it is {current}")
    if changed := provenance.describe_version_changes(started.code, own_start.code):
        raise ValueError(f"{folder} cannot be resumed: {'; '.join(changed)}")
    if name != spec.name:
        raise ValueError(f"{folder} cannot be resumed: its question or its options are other ones")
    return [TriedVariation.from_json(tried_item) for tried_item in tried_data]
