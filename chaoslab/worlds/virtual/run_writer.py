"""Writes a run from its trials as if they had run one after the other: each begins at the end of the one before it,
with all that came after its answer."""

from collections.abc import Iterable
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path

from chaoslab.core.events import Event, RunFinished, RunStarted
from chaoslab.record.held import MAIN
from chaoslab.record.log import BufferedEvent, Log, mask_events


class RunWriter:
    """A run's folder. Raises LogLost if it cannot be written."""

    def __init__(self, folder: Path, run: str, now: str, *, keep: str = "all") -> None:
        """`keep`: "all" stories, or those that "failed" (`pipeline.results` sees to it)."""
        self.folder, self._run, self._began = folder, run, datetime.fromisoformat(now)
        self.keep = keep
        self._logs: dict[str, Log] = {}
        self._stack = ExitStack()
        self.seconds = 0.0
        """The duration of all trials so far, in their worlds' time."""
        self._trials = self._succeeded = self._asked = 0

    def write_start(self, started: RunStarted) -> None:
        self._asked = started.prompts
        self.write_event(started)

    def write_trial(self, events: Iterable[BufferedEvent], *, seconds: float, ok: bool) -> None:
        """Writes a trial; each log gets all of its events or none, and the main log only after the others."""
        entries = list(events)
        # The main log last: a trial that it has begun has the lines of all others, wherever the lab was killed.
        writers = sorted(dict.fromkeys(entry.writer for entry in entries), key=MAIN.__eq__)
        for writer in writers:
            writer_entries = entries if len(writers) == 1 else [entry for entry in entries if entry.writer == writer]
            self._open_log(writer).write_buffered_events(writer_entries, began=self._began, after_s=self.seconds)
        # Up to its last event: what came after the answer belongs to the trial too.
        self.seconds += max([seconds, *(entry.t for entry in entries)])
        self._trials += 1
        self._succeeded += ok

    def write_end(self, reason: str) -> None:
        self.write_event(
            RunFinished(
                received=self._asked,
                processed=self._trials,
                succeeded=self._succeeded,
                duration_s=round(self.seconds, 6),
                reason=reason,
                # Whoever reads the run can tell by them if lines are lost.
                lines={writer: log.line_count for writer, log in self._logs.items() if writer != MAIN},
            )
        )

    def write_event(self, event: Event) -> None:
        self._open_log(MAIN).write_buffered_events(
            mask_events([BufferedEvent.build(MAIN, 0.0, None, event)]), began=self._began, after_s=self.seconds
        )

    def _open_log(self, writer: str) -> Log:
        if writer not in self._logs:
            self._logs[writer] = self._stack.enter_context(Log(self.folder, writer, run=self._run, origin=0.0))
        return self._logs[writer]

    def __enter__(self) -> "RunWriter":
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
