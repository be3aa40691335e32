"""The folder of an exploration: a run's logs, in which each trial tells what was tried in it. So it can be read like
any run, and an exploration that was broken off goes on where it was."""

from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from chaoslab.base.identity import nth
from chaoslab.core.events import RunStarted, VariationTried
from chaoslab.execution.drawn import Redrawn
from chaoslab.execution.exploring import Subject
from chaoslab.execution.pipeline import written
from chaoslab.execution.trial import Trial
from chaoslab.record import provenance
from chaoslab.record.history import History
from chaoslab.record.log import BufferedEvent
from chaoslab.record.runs import Run
from chaoslab.record.steering import obey
from chaoslab.search.variation import Tried


@dataclass(frozen=True)
class _Explored:
    """The run of an exploration, whose log tells the code that it was made with."""

    spec: Redrawn[Any]

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def now(self) -> str:
        return self.spec.now

    def started(self, trials: int) -> RunStarted:
        own = self.spec.started(trials)
        return replace(own, code={**provenance.code(), **own.code})


class SearchJournal:
    """Writes the trials of an exploration into a new run of `logs`. `recalled`: what came of those of an earlier one.
    Raises ValueError: the earlier one is of another agent, seed or version; the message is one line; LogLost: nothing
    can be written."""

    def __init__(self, subject: Subject, logs: str | Path | None, resume: str | Path | None) -> None:
        spec = _Explored(subject.run)
        self._spec, self._stack, self._number = spec, ExitStack(), 0
        self.folder: Path | None = None
        self.recalled: list[Tried] = [] if resume is None else list(_recalled(spec, Path(resume)))
        if logs is not None:
            place = Run.create(Path(logs), now=spec.now, name=spec.name)
            place.make_latest()
            self.folder = place.folder
            self._book = self._stack.enter_context(written(spec, 0, place.folder))
            for tried in self.recalled:
                self._note(tried)

    def add(self, tried: Tried, trial: Trial) -> str:
        """Writes a trial, with what was tried in it; returns its key, empty without a folder. Raises KeyboardInterrupt:
        the run is asked to stop (`record.steering`)."""
        if self.folder is None:
            return ""
        key = self._key()
        kept = [each._replace(trial=key) for each in trial._result.kept]
        kept.append(BufferedEvent.of(kept[0].writer, kept[-1].t, key, VariationTried(tried=tried.to_json())))
        self._book.add(kept, seconds=trial.seconds, ok=trial._result.ok)
        obey(self.folder)
        return key

    def _note(self, tried: Tried) -> None:
        """Writes what came of a trial whose own lines stand in the log that is resumed."""
        self._book.note(VariationTried(tried=tried.to_json()))

    def _key(self) -> str:
        self._number += 1
        return nth(self._spec.name, self._number - 1, 1).key

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.__exit__(*error)  # type: ignore[arg-type]


def _recalled(spec: _Explored, folder: Path) -> list[Tried]:
    try:
        history = History.read(folder)
    except FileNotFoundError as error:
        raise ValueError(f"{error}: give the folder of an exploration") from None
    started = history.first(RunStarted)
    if started is None:
        raise ValueError(f"{folder} holds no run: give the folder of an exploration")
    found = [event.tried for _, event in history.of(VariationTried)]
    if not found:
        raise ValueError(f"{folder} holds a run that is no exploration")
    own = spec.started(0)
    name = next(iter(history.records)).run
    for what, was, is_now in (("seed", started.seed, own.seed), ("agent", started.model, own.model)):
        if was != is_now:
            raise ValueError(f"{folder} cannot be resumed: its {what} is {was}, and here it is {is_now}")
    if changed := provenance.changed(started.code, own.code):
        raise ValueError(f"{folder} cannot be resumed: {'; '.join(changed)}")
    if name != spec.name:
        raise ValueError(f"{folder} cannot be resumed: its question or its options are other ones")
    return [Tried.from_json(each) for each in found]
