"""The ledger of a service, so that nothing is done twice: one log line per effect, and the first answer to each request
id.

Within a trial requests are handled one after the other, so that the second of two equal ones finds the first one's
answer. The log is a service's only memory, so a service may be restarted, or run as several processes that share the
file.
"""

import contextlib
import fcntl
import io
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from chaoslab.base.clock import Clock, system
from chaoslab.base.files import open_regular
from chaoslab.base.identity import TrialId
from chaoslab.core.events import Effect, Event, LabWarning
from chaoslab.core.service_spec import ServiceSpec
from chaoslab.flask_tools.service_module import Done, parse_moment
from chaoslab.record.lines import parse_line
from chaoslab.record.log import Log, LogLost
from chaoslab.record.runs import Run

# Bounded, as a service serves a run of any number of trials; what is dropped is read again from the log.
TRIALS_MAX = 256
ANSWERS_MAX = 512
RUNS_MAX = 16


@dataclass(frozen=True)
class Worked:
    """An answer as bytes on the wire; `done` is its effect."""

    status: int
    text: str
    headers: dict[str, str]
    done: Done | None = None
    replayed: bool = False
    failed: bool = False


class Mismatch(Exception):
    """A request id came back with another request."""


class Unwritten(Exception):
    """The ledger cannot be written; one line has the file and the reason."""


@dataclass
class _TrialHistory:
    """One trial's past at this service. Answers with an effect are never dropped; others are if there are too many."""

    past: list[Done] = field(default_factory=list)
    effects: dict[str, tuple[str, Worked]] = field(default_factory=dict)
    answers: OrderedDict[str, tuple[str, Worked]] = field(default_factory=OrderedDict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    users: int = 0
    read_to: int = 0

    def read_new_lines(self, log: BinaryIO, trial: str) -> None:
        """Reads the trial's new lines in the log; unreadable lines are skipped."""
        # Looked for as bytes first: most lines of a log are other trials'.
        mark = f'"{trial}"'.encode()
        log.seek(self.read_to)
        for line in log:
            self.read_to += len(line)
            record = parse_line(line) if mark in line else None
            if record is not None and record.trial == trial and isinstance(record.event, Effect):
                self.add_effect(record.event)

    def add_effect(self, event: Effect) -> None:
        done = Done(event.effect, event.content)
        self.past.append(done)
        # Without an id nobody can ask for the same again.
        if event.request_id and event.reply:
            reply: dict[str, Any] = event.reply
            worked = Worked(int(reply["status"]), str(reply["body"]), dict(reply["headers"]), done)
            self.effects[event.request_id] = (event.fingerprint, worked)


class RunStore(Protocol):
    """The runs known to a service, with the logs that are its memory."""

    def open_run(self, name: str, writer: str) -> tuple[Run, Log]:
        """Raises LookupError if there is no such run, Unwritten if its log cannot be opened."""

    def lock_run_log(self, log: Log) -> AbstractContextManager[BinaryIO]:
        """A context with the log so far, while nobody else works on the run."""


@dataclass(frozen=True)
class FolderRunStore:
    """Runs as folders in `logs`. `now` is for calls that name no run."""

    logs: Path
    now: str
    clock: Clock = system

    def open_run(self, name: str, writer: str) -> tuple[Run, Log]:
        if (self.logs / name).is_symlink():  # `latest` is a second name: two writers would share one file
            raise LookupError(f"no run is called '{name}' in {self.logs}")
        try:
            run = Run.open(self.logs, name, now=self.now, clock=self.clock)
            return run, run.open_log(writer, clock=self.clock)
        except OSError as error:
            place = error.filename or self.logs / name
            raise Unwritten(f"{place} cannot be written ({error.strerror or error})") from error

    def lock_run_log(self, log: Log) -> AbstractContextManager[BinaryIO]:
        return _lock_log_file(log.path)


@dataclass(frozen=True)
class SingleRunStore:
    """The run of this process alone, kept in memory: nobody else writes, and nothing has to be read again."""

    run: Run
    log: Log

    def open_run(self, name: str, writer: str) -> tuple[Run, Log]:  # noqa: ARG002
        return self.run, self.log

    def lock_run_log(self, log: Log) -> AbstractContextManager[BinaryIO]:  # noqa: ARG002
        return io.BytesIO()


class Ledger:
    """The effects of one service, by run and trial."""

    def __init__(self, service: ServiceSpec, runs: RunStore) -> None:
        self._service, self._known = service, runs
        self._runs: OrderedDict[str, tuple[Run, Log]] = OrderedDict()
        self._books: OrderedDict[tuple[str, str], _TrialHistory] = OrderedDict()
        self._told: set[str] = set()
        self._lock = threading.Lock()

    @contextmanager
    def isolate_trial(self) -> Iterator[None]:
        """A context that begins without any past and leaves none, for a trial that no other is to know of."""
        kept = self._runs, self._books, self._told
        self._runs, self._books, self._told = OrderedDict(), OrderedDict(), set()
        try:
            yield
        finally:
            self._runs, self._books, self._told = kept

    def answer_once(
        self,
        trial: TrialId,
        key: str | None,
        fingerprint: str,
        tool: str,
        do: Callable[[datetime, tuple[Done, ...]], Worked],
    ) -> Worked:
        """The first answer to this request id, or else the answer of `do`, whose effect is logged before it is
        returned. Raises LookupError: the trial's run does not exist. Mismatch: the id belongs to another request.
        Unwritten: the effect could not be logged, so it has not happened."""
        # The file's lock too: a service may run as several processes.
        with self._open_trial_history(trial) as (run, log, book), book.lock, self._known.lock_run_log(log) as lines:
            book.read_new_lines(lines, trial.key)
            # Under the locks: the second of two equal requests waits for the first one's answer.
            known = (book.effects.get(key) or book.answers.get(key)) if key else None
            if known is not None:
                first, worked = known
                if first != fingerprint:
                    raise Mismatch
                return Worked(worked.status, worked.text, worked.headers, replayed=True)
            worked = do(parse_moment(run.now), tuple(book.past))
            if worked.done is not None:
                reply = {"status": worked.status, "body": worked.text, "headers": worked.headers}
                done = worked.done
                event = Effect(
                    target=self._service.name,
                    tool=tool,
                    request_id=key or "",
                    effect=done.effect,
                    content=done.content,
                    reply=reply,
                    fingerprint=fingerprint,
                )
                _write_event(log, event, trial)
                # To the end of the file: the new line is known already.
                book.read_to = lines.seek(0, os.SEEK_END)
                book.add_effect(event)
            # A failure may be asked again; it had no effect.
            elif key and not worked.failed:
                book.answers[key] = (fingerprint, worked)
                if len(book.answers) > ANSWERS_MAX:
                    book.answers.popitem(last=False)
            return worked

    def log_warnings_once(self, messages: Iterable[str], trial: TrialId) -> None:
        """Writes warnings into the log of the trial's run, once per run. Raises LookupError, Unwritten: see
        `answer_once`."""
        if trial.run not in self._told:
            # Before it is written: a log that cannot be written would be told of again and again.
            self._told.add(trial.run)
            for message in messages:
                self.log_warning(message, trial)

    def log_warning(self, message: str, trial: TrialId) -> None:
        """Writes a warning into the log of the trial's run. Raises LookupError, Unwritten: see `answer_once`."""
        with self._open_trial_history(trial) as (_, log, _book):
            _write_event(log, LabWarning(message=message), trial)

    def close(self) -> None:
        with self._lock:
            for _, log in self._runs.values():
                log.close()
            self._runs.clear()
            self._books.clear()

    @contextmanager
    def _open_trial_history(self, trial: TrialId) -> Iterator[tuple[Run, Log, _TrialHistory]]:
        with self._lock:
            run, log = self._open_run(trial.run)
            name = (trial.run, trial.key)
            if name not in self._books:
                self._books[name] = _TrialHistory()
            self._books.move_to_end(name)
            book = self._books[name]
            book.users += 1
            self._drop_unused_trials()
        try:
            yield run, log, book
        finally:
            with self._lock:
                book.users -= 1

    def _open_run(self, name: str) -> tuple[Run, Log]:
        if name in self._runs and self._runs[name][1].lost is not None:  # there may be room again, or another file
            self._drop_run(name)
        if name not in self._runs:
            self._runs[name] = self._known.open_run(name, self._service.name)
        self._runs.move_to_end(name)
        return self._runs[name]

    def _drop_unused_trials(self) -> None:
        """Drops the trials and runs that were not used for longest; a trial at work is never dropped."""
        if (many := len(self._books) - TRIALS_MAX) > 0:
            idle = (name for name, book in self._books.items() if not book.users)
            # Listed first, since deleting changes the dictionary.
            for name in list(islice(idle, many)):
                del self._books[name]
        if (many := len(self._runs) - RUNS_MAX) > 0:
            busy = {run for (run, _), book in self._books.items() if book.users}
            # With its runs go the books that read from its log.
            for run_name in [name for name in self._runs if name not in busy][:many]:
                self._drop_run(run_name)

    def _drop_run(self, run: str) -> None:
        self._runs.pop(run)[1].close()
        for name in [name for name in self._books if name[0] == run]:
            del self._books[name]


def _write_event(log: Log, event: Event, trial: TrialId) -> None:
    try:
        log.write(event, trial=trial.key)
    except LogLost as lost:  # no server would turn LogLost into an answer
        raise Unwritten(str(lost)) from lost


@contextmanager
def _lock_log_file(path: Path) -> Iterator[BinaryIO]:
    """A context with the log for reading, while no other process or thread of this service works on the run. A missing
    log reads as empty; the next write reports that it is missing."""
    try:
        log: BinaryIO = open_regular(path)
    except OSError:
        log = io.BytesIO()
    with log:
        with contextlib.suppress(OSError):  # without locks, a file system can serve one process a service
            fcntl.flock(log, fcntl.LOCK_EX)
        yield log
