"""Writes events down: one writer owns one file, and a line is with the system before the writer goes on.

So a killed process loses nothing that it had logged.
"""

from __future__ import annotations

import errno
import json
import os
import threading
from dataclasses import asdict
from pathlib import Path

from chaoslab.clock import Clock, iso, system
from chaoslab.events import Event


class LogLost(BaseException):
    """A line could not be written; says which file, why, and what to do. What went on from here would be an experiment without a record.

    No `Exception`, since an SDK would take it for one more network error and retry it.
    """


class Log:
    """Appends events to `<folder>/<writer>.log`: when `write` returns the whole line is there, when it raises none of it is.

    Safe to share between threads.
    """

    def __init__(self, folder: Path, writer: str, *, run: str, origin: float, clock: Clock = system) -> None:
        """`origin` is the monotonic time at which the run began.

        Raises:
            OSError: the file cannot be opened.
        """
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"{writer}.log"
        self._run, self._writer, self._origin, self._clock = run, writer, origin, clock
        self._seq = _mend(self.path)
        self._file = self.path.open("ab", buffering=0)
        self._lock = threading.Lock()
        self.lost: LogLost | None = None
        """What `write` last raised: a framework between it and the writer's owner may swallow it."""
        self._torn = False

    def write(self, event: Event, *, trial: str | None = None) -> None:
        """Raises LogLost: the disk is full, or the file was deleted, say."""
        with self._lock:
            envelope = {
                "ts": iso(self._clock.utc()),
                "t": round(self._clock.monotonic() - self._origin, 6),
                "run": self._run,
                "trial": trial,
                "writer": self._writer,
                "seq": self._seq + 1,
                "kind": event.kind,
            }
            line = json.dumps(envelope | asdict(event), ensure_ascii=False)  # type: ignore[call-overload]
            try:
                self._append(line.encode("utf-8", "surrogatepass") + b"\n")
            except OSError as error:
                why = f"{self.path} cannot be written ({error.strerror or error})"
                self.lost = LogLost(f"{why}: {REMEDIES.get(error.errno or 0, 'see to it')} and start again")
                raise self.lost from error
            self._seq += 1

    def _append(self, line: bytes) -> None:
        file = self._file.fileno()
        held = os.fstat(file)
        if self._torn:
            raise OSError(errno.EIO, "its last line is cut")
        if not held.st_nlink:  # the system would take each line, and nobody could read it
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


REMEDIES = {
    errno.ENOSPC: "make room",
    errno.EDQUOT: "make room",
    errno.EFBIG: "raise the limit of a file's size",
    errno.ENOENT: "leave a run's folder alone while it goes on",
    errno.EROFS: "make it writable",
}


def _mend(path: Path) -> int:
    """Ends a line that a killed writer left cut, and returns how many lines the file then holds."""
    if not path.exists():
        return 0
    data = path.read_bytes()
    if data and not data.endswith(b"\n"):
        with path.open("ab") as file:
            file.write(b"\n")
    return data.count(b"\n") + (1 if data and not data.endswith(b"\n") else 0)
