"""Writes events to logs. One writer owns one file, and a line is with the system before the writer goes on. So a killed
process loses nothing that it had logged."""

from __future__ import annotations

import errno
import json
import math
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from chaoslab.base.boundary import Through
from chaoslab.base.clock import Clock, add_seconds, format_iso, system
from chaoslab.base.files import open_regular
from chaoslab.base.json_text import make_json_writer
from chaoslab.base.secrets import Masker, has_no_secret, printed
from chaoslab.core.events import AttemptEvent, Event, PromptStarted
from chaoslab.record.held import MAIN, lock_log
from chaoslab.record.lines import Record, make_record


class LogLost(Through):
    """A line could not be written. Its text names the file, the reason and the remedy. The run ends: what cannot be
    written down is not done. It is no `Exception`, since an SDK would ask again."""


def make_log_lost_error(path: Path, error: OSError) -> LogLost:
    """The error about a file of a run that cannot be written."""
    reason = f"{path} cannot be written ({error.strerror or error})"
    return LogLost(f"{reason}: {REMEDIES.get(error.errno or 0, 'see to it')} and start again")


class Log:
    """Appends events to `<folder>/<writer>.log`. If `write` returns, the whole line is there; if it raises, none of it.
    Safe to share between threads."""

    def __init__(
        self, folder: Path, writer: str, *, run: str, origin: float, clock: Clock = system, secrets: Sequence[str] = ()
    ) -> None:
        """Opens the log. `origin` is the monotonic time at which the run began. `secrets` are masked in every line, as
        are those that stand in it. Raises OSError: the file cannot be opened."""
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"{writer}.log"
        self._run, self._writer, self._origin, self._clock = run, writer, origin, clock
        self._masker = Masker()
        self.hide_secrets(secrets)
        self._seq = _end_cut_line(self.path)
        # Unbuffered: a killed process loses nothing that it had logged.
        self._file = self.path.open("ab", buffering=0)
        self._number = self._file.fileno()
        if writer == MAIN:
            lock_log(self._file)
        self._lock = threading.Lock()
        self.lost: LogLost | None = None
        """The last error that `write` raised. A framework between `write` and the writer's owner may swallow it."""
        self._torn = False

    def write(self, event: Event, *, trial: str | None = None) -> None:
        """Appends the event. Raises LogLost: it cannot be written, as when the disk is full or the file was deleted."""
        with self._lock:
            ts, t = format_iso(self._clock.utc()), round(self._clock.monotonic() - self._origin, 6)
            line = render_line(ts, t, self._run, trial, self._writer, self._seq + 1, self.encode_masked_event(event))
            self._write_lines(line)
            # Only now that it is there: a number without its line would be a gap.
            self._seq += 1

    @property
    def line_count(self) -> int:
        """The number of lines in the file."""
        return self._seq

    def hide_secrets(self, secrets: Iterable[str]) -> None:
        """Masks these too in every line from now on, and in what this process prints."""
        if new_secrets := {*secrets}:
            self._masker.add_secrets(new_secrets)
            printed.add_secrets(new_secrets)

    def encode_masked_event(self, event: Event) -> str:
        """The text of `encode_event` without secrets."""
        text = encode_event(event)
        return self._masker.mask_known(text) if has_no_secret(vars(event).values()) else self._masker.mask(text)

    def write_buffered_events(self, events_: Iterable[BufferedEvent], *, began: datetime, after_s: float) -> None:
        """Writes buffered events, moved by `after_s` seconds, into a run that began at `began`; all of them or none.
        Raises LogLost: as `write`."""
        with self._lock:
            seqs = {self._writer: self._seq}
            lines = "".join(_render_line_texts(events_, run=self._run, began=began, after_s=after_s, seqs=seqs))
            self._write_lines(lines.encode("utf-8", "surrogatepass"))
            self._seq = seqs[self._writer]

    def _write_lines(self, lines: bytes) -> None:
        try:
            self._append_bytes(lines)
        except OSError as error:
            self.lost = make_log_lost_error(self.path, error)
            raise self.lost from error

    def _append_bytes(self, line: bytes) -> None:
        file = self._number
        status = os.fstat(file)
        if self._torn:
            raise OSError(errno.EIO, "its last line is cut")
        if not status.st_nlink:  # the system would take each line, but no file would show it
            raise FileNotFoundError(errno.ENOENT, "it was deleted")
        try:
            # The system may take a part, as just before a disk is full.
            while line:
                line = line[os.write(file, line) :]
        except BaseException:
            # A part of a line may be there: it is taken back, so that nobody reads half of one.
            self._torn = True
            os.ftruncate(file, status.st_size)
            self._torn = False
            raise

    def close(self) -> None:
        with self._lock:
            self._file.close()
            self._number = -1  # the system gives it to the next file that is opened, which is nobody's log

    def __enter__(self) -> Log:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_KIND = len('"kind": "')
_new = tuple.__new__
_begun: list[tuple[Event | None, str | Event, bool]] = [(None, "", False)]
"""The last event that began a trial, its text, and if that is plain: the trials of a run share it."""


class BufferedEvent(NamedTuple):
    """An event that waits to be written. `t`: seconds since its trial began. `text`: the text of `encode_event`, or the
    event itself if its fields hold moments, which move with it. `plain`: it has no sign of a secret in it."""

    writer: str
    t: float
    trial: str | None
    text: str | Event
    plain: bool

    @classmethod
    def build(cls, writer: str, t: float, trial: str | None, event: Event) -> BufferedEvent:
        if event is _begun[0][0]:
            _, text, is_plain = _begun[0]
        else:
            text, is_plain = event if event.moves else encode_event(event), has_no_secret(vars(event).values())
            if type(event) is PromptStarted:
                _begun[0] = event, text, is_plain
        return _new(cls, (writer, t, trial, text, is_plain))  # its own takes three times as long

    def change_texts(self, change: Callable[[str], str]) -> BufferedEvent:
        """The same with its texts changed."""
        text = self.text
        if isinstance(text, str):
            return self._replace(text=change(text))
        texts = {name: change(value) for name, value in vars(text).items() if type(value) is str}
        return self._replace(text=replace(text, **texts))  # type: ignore[type-var]  # events are dataclasses

    @property
    def fields(self) -> dict[str, Any]:
        """The event's kind and fields."""
        fields: dict[str, Any] = json.loads(f"{{{self.text if isinstance(self.text, str) else encode_event(self.text)}")
        return fields

    def make_record(self, seq: int, *, run: str, began: datetime) -> Record | None:
        """The record that its line would make in a run that began at `began`, with its trial; None if the line could
        not be read. `seq` orders it among its writer's."""
        t = round(self.t, 6)
        text = self.text if isinstance(self.text, str) else encode_event(self.text)
        envelope = {
            "ts": format_iso(add_seconds(began, t)), "t": t, "run": run, "trial": self.trial, "writer": self.writer,
            "seq": seq,
        }  # fmt: skip
        return make_record(
            envelope | _DECODER.raw_decode(f"{{{text}")[0], brackets=text.count("[") + text.count("{") + 1
        )

    @property
    def kind(self) -> str:
        """The event's kind."""
        text = self.text
        return text[_KIND : text.index('"', _KIND)] if isinstance(text, str) else text.kind

    def is_of_kind(self, kind: type[Event]) -> bool:
        """Tells if the event is of that kind."""
        return self.kind == kind.kind


def mask_events(events_: list[BufferedEvent], secrets: Iterable[str] = ()) -> list[BufferedEvent]:
    """The events of a trial without the secrets of any of them, so that they are the same whatever ran before it.
    `secrets`: further ones."""
    masker = Masker(secrets)
    masked_events = [entry if entry.plain else entry.change_texts(masker.mask) for entry in events_]
    return [entry.change_texts(masker.mask_known) for entry in masked_events] if masker.known else masked_events


class MemoryLog(Log):
    """A log in memory. Its owner takes the events from there."""

    def __init__(
        self,
        writer: str,
        events_: list[BufferedEvent],
        *,
        clock: Clock = system,
        origin: float = 0.0,
        events: list[Event] | None = None,
    ) -> None:
        """Makes a log that appends to `events_`, which several writers may share. All times are since `origin`.
        `events`: gets the event of each entry as it is, for a reader in this process."""
        self._writer, self._kept, self._clock, self._origin = writer, events_, clock, origin
        self._events = events
        self.lost = None

    def write(self, event: Event, *, trial: str | None = None) -> None:
        t = round(self._clock.monotonic() - self._origin, 6)
        self._kept.append(BufferedEvent.build(self._writer, t, trial, event))
        if self._events is not None:
            self._events.append(event)

    def close(self) -> None:
        pass


def encode_event(event: Event) -> str:
    """The event as JSON, without the envelope and its first brace."""
    fields, kind = {**vars(event)}, f'"kind": "{event.kind}"'
    for name in event.left_out:
        if fields[name] is None:
            del fields[name]
    if isinstance(event, AttemptEvent):  # whose attempt's fields stand beside the others; the trial is the envelope's
        del fields["at"]
        kind = f"{kind}, {event.at.json_fields}"
    return f"{kind}, {_spelt(fields)[1:]}" if fields else f"{kind}}}"


_spelt = make_json_writer()
_DECODER = json.JSONDecoder()


def render_line(ts: str, t: float, run: str, trial: str | None, writer: str, seq: int, text: str) -> bytes:
    """A whole line: the envelope and the text of `encode_event`."""
    return f"{_render_envelope_head(ts, t, run, trial, writer)}{seq}, {text}\n".encode("utf-8", "surrogatepass")


def _render_envelope_head(ts: str, t: float, run: str, trial: str | None, writer: str) -> str:
    return f'{{"ts": "{ts}", "t": {t}, {_render_envelope_names(run, trial, writer)}, "seq": '


@lru_cache(256)
def _render_envelope_names(run: str, trial: str | None, writer: str) -> str:
    return json.dumps({"run": run, "trial": trial, "writer": writer})[1:-1]


def render_lines(
    events_: Iterable[BufferedEvent], *, run: str, began: datetime, after_s: float, seqs: dict[str, int]
) -> Iterator[bytes]:
    """The lines of buffered events, moved by `after_s` seconds, in a run that began at `began`. `seqs`: the number of
    lines of each writer, which is counted on."""
    texts = _render_line_texts(events_, run=run, began=began, after_s=after_s, seqs=seqs)
    return (text.encode("utf-8", "surrogatepass") for text in texts)


def _render_line_texts(
    events_: Iterable[BufferedEvent], *, run: str, began: datetime, after_s: float, seqs: dict[str, int]
) -> Iterator[str]:
    at_s, run_text, head = math.nan, "", ""
    whose: str | None = None
    for writer, since_s, trial, text, _ in events_:
        seqs[writer] = seq = seqs.get(writer, 0) + 1
        # Many events of a trial have one moment in virtual time, and share the beginning of their lines.
        if (
            since_s != at_s or writer != run_text or trial != whose
        ):  # many events of a trial have one moment in virtual time
            t = round(after_s + since_s, 6)
            at_s, run_text, whose, head = (
                since_s,
                writer,
                trial,
                _render_envelope_head(format_iso(add_seconds(began, t)), t, run, trial, writer),
            )
        spelt = text if isinstance(text, str) else encode_event(text.shift_time(after_s))
        yield f"{head}{seq}, {spelt}\n"


REMEDIES = {
    errno.ENOSPC: "make room",
    errno.EDQUOT: "make room",
    errno.EFBIG: "raise the limit of a file's size",
    errno.ENOENT: "leave a run's folder alone while it goes on",
    errno.EROFS: "make it writable",
}


def _end_cut_line(path: Path) -> int:
    """Ends a line that a killed writer left cut. Returns the number of lines in the file."""
    if not path.exists():
        return 0
    with open_regular(path) as file:
        data = file.read()
    if data and not data.endswith(b"\n"):
        with path.open("ab") as end:
            end.write(b"\n")
    return data.count(b"\n") + (1 if data and not data.endswith(b"\n") else 0)
