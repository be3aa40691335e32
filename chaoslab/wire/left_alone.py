"""Tells by one `stat` if a file was left alone since it was last read, which costs a tenth of asking SQLite."""

from __future__ import annotations

import os
from pathlib import Path

from chaoslab.base.clock import Clock

SETTLED_S = 0.05
"""A file system's clock ticks every few milliseconds, so a second write may have the time of the first one. A write
that is older than this when the file is read has a time of its own."""


class LeftAlone:
    """The times of one file's writes. `due` is asked before each reading."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path, self._clock = path, clock
        self._seen: tuple[int, int, int] | None = None
        self._settled = False

    def due(self) -> bool:
        """True if the file may have been written since this last returned True."""
        try:
            held = os.stat(self._path)
        except OSError:  # its reader says what is wrong
            self._seen = None
            return True
        seen = held.st_mtime_ns, held.st_ino, held.st_size
        if seen == self._seen and self._settled:
            return False
        self._seen = seen
        self._settled = self._clock.utc().timestamp() - held.st_mtime_ns / 1e9 > SETTLED_S
        return True
