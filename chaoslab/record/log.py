"""Writes events to logs. One writer owns one file, and a line is with the system before the writer goes on.

So a killed process loses nothing that it had logged.
"""

from __future__ import annotations

import errno
import json
import os
import re
import threading
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from chaoslab.base.clock import Clock, iso, later, system
from chaoslab.base.json_text import speller
from chaoslab.core.events import AttemptEvent, Event
from chaoslab.record.held import MAIN, hold
from chaoslab.record.lines import Record, record_of

MASK = "***"
SECRET_MIN = 8
"""The fewest characters of a secret, or of its beginning in a text that was cut, that are masked. Fewer may stand in
any text."""


class LogLost(BaseException):
    """A line could not be written. Its text names the file, the reason and the remedy.

    The run ends, since it would go on without a record. This is no `Exception`, since an SDK would take it for a
    network error and retry.
    """


class Log:
    """Appends events to `<folder>/<writer>.log`. If `write` returns, the whole line is there; if it raises, none of it.

    Safe to share between threads.
    """

    _secret: re.Pattern[str] | None = None

    def __init__(
        self, folder: Path, writer: str, *, run: str, origin: float, clock: Clock = system, secrets: Sequence[str] = ()
    ) -> None:
        """Opens the log. `origin` is the monotonic time at which the run began. `secrets` are masked in every line.

        Raises:
            OSError: the file cannot be opened.
        """
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"{writer}.log"
        self._run, self._writer, self._origin, self._clock = run, writer, origin, clock
        self._secrets = set(secrets)
        self._secret = _any_of(secrets)
        self._seq = _mend(self.path)
        self._file = self.path.open("ab", buffering=0)
        if writer == MAIN:
            hold(self._file)
        self._lock = threading.Lock()
        self.lost: LogLost | None = None
        """The last error that `write` raised. A framework between `write` and the writer's owner may swallow it."""
        self._torn = False

    def write(self, event: Event, *, trial: str | None = None) -> None:
        """Appends the event.

        Raises:
            LogLost: it cannot be written, as when the disk is full or the file was deleted.
        """
        with self._lock:
            ts, t = iso(self._clock.utc()), round(self._clock.monotonic() - self._origin, 6)
            line = spell(ts, t, self._run, trial, self._writer, self._seq + 1, self._masked(encode_event(event)))
            self._write(line)
            self._seq += 1

    def write_all(self, texts: Sequence[str], *, trial: str | None = None) -> None:
        """Appends events, each the text of `encode_event`, at one moment; all of them or none.

        Raises:
            LogLost: as `write`.
        """
        with self._lock:
            ts, t = iso(self._clock.utc()), round(self._clock.monotonic() - self._origin, 6)
            envelope = json.dumps({"ts": ts, "t": t, "run": self._run, "trial": trial, "writer": self._writer})[:-1]
            numbered = enumerate(map(self._masked, texts), self._seq + 1)
            lines = [f'{envelope}, "seq": {seq}, {text}\n' for seq, text in numbered]
            self._write("".join(lines).encode("utf-8", "surrogatepass"))
            self._seq += len(lines)

    def hide(self, secrets: Iterable[str]) -> None:
        """Masks these too in every line from now on."""
        with self._lock:
            self._secrets = {*self._secrets, *secrets}
            self._secret = _any_of(self._secrets)

    def _masked(self, text: str) -> str:
        return text if self._secret is None else self._secret.sub(MASK, text)

    def copy(self, kept: Iterable[BufferedEvent], *, began: datetime, after_s: float) -> None:
        """Writes buffered events, moved by `after_s` seconds, into a run that began at `began`; all of them or none.

        Raises:
            LogLost: as `write`.
        """
        with self._lock:
            seqs = {self._writer: self._seq}
            self._write(b"".join(lines_of(kept, run=self._run, began=began, after_s=after_s, seqs=seqs)))
            self._seq = seqs[self._writer]

    def _write(self, lines: bytes) -> None:
        try:
            self._append(lines)
        except OSError as error:
            why = f"{self.path} cannot be written ({error.strerror or error})"
            self.lost = LogLost(f"{why}: {REMEDIES.get(error.errno or 0, 'see to it')} and start again")
            raise self.lost from error

    def _append(self, line: bytes) -> None:
        file = self._file.fileno()
        held = os.fstat(file)
        if self._torn:
            raise OSError(errno.EIO, "its last line is cut")
        if not held.st_nlink:  # the system would take each line, but no file would show it
            raise FileNotFoundError(errno.ENOENT, "it was deleted")
        try:
            while line:
                line = line[os.write(file, line) :]
        except BaseException:
            self._torn = True
            os.ftruncate(file, held.st_size)
            self._torn = False
            raise

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Log:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_KIND = len('"kind": "')


class BufferedEvent(NamedTuple):
    """An event that waits to be written. `t`: seconds since its trial began. `text`: the text of `encode_event`, or the
    event itself if its fields hold moments, which move with it."""

    writer: str
    t: float
    trial: str | None
    text: str | Event

    @classmethod
    def of(cls, writer: str, t: float, trial: str | None, event: Event) -> BufferedEvent:
        return cls(writer, t, trial, event if event.moves else encode_event(event))

    @property
    def fields(self) -> dict[str, Any]:
        """The event's kind and fields."""
        fields: dict[str, Any] = json.loads(f"{{{self.text if isinstance(self.text, str) else encode_event(self.text)}")
        return fields

    def record(self, seq: int, *, run: str, began: datetime) -> Record | None:
        """The record that its line would make in a run that began at `began`, with its trial; None if the line could
        not be read. `seq` orders it among its writer's."""
        t = round(self.t, 6)
        text = self.text if isinstance(self.text, str) else encode_event(self.text)
        envelope = {
            "ts": iso(later(began, t)),
            "t": t,
            "run": run,
            "trial": self.trial,
            "writer": self.writer,
            "seq": seq,
        }
        return record_of(envelope | _DECODER.raw_decode(f"{{{text}")[0], brackets=text.count("[") + text.count("{") + 1)

    @property
    def kind(self) -> str:
        """The event's kind."""
        text = self.text
        return text[_KIND : text.index('"', _KIND)] if isinstance(text, str) else text.kind

    def is_a(self, kind: type[Event]) -> bool:
        """Tells if the event is of that kind."""
        return self.kind == kind.kind


class MemoryLog(Log):
    """A log in memory. Its owner takes the events from there."""

    def __init__(
        self, writer: str, kept: list[BufferedEvent], *, clock: Clock = system, origin: float = 0.0,
        events: list[Event] | None = None,
    ) -> None:  # fmt: skip
        """Makes a log that appends to `kept`, which several writers may share. All times are since `origin`. `events`:
        gets the event of each entry as it is, for a reader in this process."""
        self._writer, self._kept, self._clock, self._origin = writer, kept, clock, origin
        self._events = events
        self.lost = None

    def write(self, event: Event, *, trial: str | None = None) -> None:
        t = round(self._clock.monotonic() - self._origin, 6)
        self._kept.append(BufferedEvent.of(self._writer, t, trial, event))
        if self._events is not None:
            self._events.append(event)

    def close(self) -> None:
        pass


def encode_event(event: Event) -> str:
    """The event as JSON, without the envelope and its first brace."""
    if not isinstance(event, AttemptEvent):
        plain = {"kind": event.kind, **vars(event)}
        for name in event.left_out:
            if plain[name] is None:
                del plain[name]
        return _spelt(plain)[1:]
    at = event.at  # its fields stand beside the others; the trial is the envelope's
    fields = {
        "kind": event.kind,
        "target": at.target,
        "turn": at.turn,
        "request": at.request,
        "attempt": at.attempt,
        "request_id": at.request_id,
        **vars(event),
    }
    del fields["at"]
    for name in event.left_out:
        if fields[name] is None:
            del fields[name]
    return _spelt(fields)[1:]


_spelt = speller()
_DECODER = json.JSONDecoder()


def spell(ts: str, t: float, run: str, trial: str | None, writer: str, seq: int, text: str) -> bytes:
    """A whole line: the envelope and the text of `encode_event`."""
    envelope = {"ts": ts, "t": t, "run": run, "trial": trial, "writer": writer, "seq": seq}
    return f"{json.dumps(envelope)[:-1]}, {text}\n".encode("utf-8", "surrogatepass")


def lines_of(
    kept: Iterable[BufferedEvent], *, run: str, began: datetime, after_s: float, seqs: dict[str, int]
) -> Iterator[bytes]:
    """The lines of buffered events, moved by `after_s` seconds, in a run that began at `began`. `seqs`: the number of
    lines of each writer, which is counted on."""
    for entry in kept:
        t = round(after_s + entry.t, 6)
        text = entry.text if isinstance(entry.text, str) else encode_event(entry.text.moved(after_s))
        seqs[entry.writer] = seq = seqs.get(entry.writer, 0) + 1
        yield spell(iso(later(began, t)), t, run, entry.trial, entry.writer, seq, text)


REMEDIES = {
    errno.ENOSPC: "make room",
    errno.EDQUOT: "make room",
    errno.EFBIG: "raise the limit of a file's size",
    errno.ENOENT: "leave a run's folder alone while it goes on",
    errno.EROFS: "make it writable",
}


def _any_of(secrets: Iterable[str]) -> re.Pattern[str] | None:
    """A pattern of each secret, also of the beginning of one that was cut off."""
    spelt = [json.dumps(secret, ensure_ascii=False)[1:-1] for secret in secrets if len(secret) >= SECRET_MIN]
    parts = [
        re.escape(secret[:SECRET_MIN])
        + "".join(f"(?:{re.escape(c)}" for c in secret[SECRET_MIN:])
        + ")?" * len(secret[SECRET_MIN:])
        for secret in spelt
    ]
    return re.compile("|".join(parts)) if parts else None


def _mend(path: Path) -> int:
    """Ends a line that a killed writer left cut. Returns the number of lines in the file."""
    if not path.exists():
        return 0
    data = path.read_bytes()
    if data and not data.endswith(b"\n"):
        with path.open("ab") as file:
            file.write(b"\n")
    return data.count(b"\n") + (1 if data and not data.endswith(b"\n") else 0)
