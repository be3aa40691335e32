"""Writes a run from its trials as if they had run one after the other: each begins at the end of the one before it,
with all that came after its answer."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path

from chaoslab.core.events import Event, RunFinished, RunStarted
from chaoslab.record.held import MAIN
from chaoslab.record.log import BufferedEvent, Log, masked


class RunWriter:
    """A run's folder. Raises LogLost if it cannot be written."""

    def __init__(self, folder: Path, run: str, now: str) -> None:
        self.folder, self._run, self._began = folder, run, datetime.fromisoformat(now)
        self._logs: dict[str, Log] = {}
        self._stack = ExitStack()
        self.seconds = 0.0
        """The duration of all trials so far, in their worlds' time."""
        self._trials = self._succeeded = self._asked = 0

    def begin(self, started: RunStarted) -> None:
        self._asked = started.prompts
        self.note(started)

    def add(self, kept: Iterable[BufferedEvent], *, seconds: float, ok: bool) -> None:
        """Writes a trial; each log gets all of its events or none, and the main log only after the others."""
        by_writer: dict[str, list[BufferedEvent]] = {}
        ended = seconds
        for entry in kept:
            ended = max(ended, entry.t)
            by_writer.setdefault(entry.writer, []).append(entry)
        # The main log last: a trial that it has begun has the lines of all others, wherever the lab was killed.
        for writer, entries in sorted(by_writer.items(), key=lambda each: each[0] == MAIN):
            self._log(writer).copy(entries, began=self._began, after_s=self.seconds)
        self.seconds += ended
        self._trials += 1
        self._succeeded += ok

    def end(self, reason: str) -> None:
        self.note(
            RunFinished(
                received=self._asked,
                processed=self._trials,
                succeeded=self._succeeded,
                duration_s=round(self.seconds, 6),
                reason=reason,
                lines={writer: log.lines for writer, log in self._logs.items() if writer != MAIN},
            )
        )

    def note(self, event: Event) -> None:
        self._log(MAIN).copy(
            masked([BufferedEvent.of(MAIN, 0.0, None, event)]), began=self._began, after_s=self.seconds
        )

    def _log(self, writer: str) -> Log:
        if writer not in self._logs:
            log = Log(self.folder, writer, run=self._run, origin=0.0)
            self._logs[writer] = self._stack.enter_context(log)
        return self._logs[writer]

    def __enter__(self) -> RunWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
