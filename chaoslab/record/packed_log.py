"""Writes the lines of trials into packs (`packs.py`)."""

import json
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from chaoslab.base import extras
from chaoslab.base.files import replacing
from chaoslab.record import pack_sums
from chaoslab.record.log import BufferedEvent, Log
from chaoslab.record.packs import Pack, names, place_of

BYTES = 4 << 20
"""The fewest bytes of lines in a pack, but for the last: about a thousand trials with three tools."""
LEVEL = 3
"""The level of compression, which costs some 2 % of the time of a trial."""


class PackedLog(Log):
    """A log whose trials wait until there are enough for a pack. A killed process loses what waits."""

    def __init__(self, folder: Path, writer: str, *, run: str) -> None:
        """Opens the log. Raises OSError: the file cannot be opened. Incomplete: the package that compresses is not
        installed."""
        extras.check("a packed log", "zstd")
        super().__init__(folder, writer, run=run, origin=0.0)
        self._names = names(writer)
        self._held: list[bytes] = []
        self._trials: dict[str, list[int]] = {}
        self._first = 0
        self.sums: list[pack_sums.Block] = []
        """Those of the trials that wait, if there are any of all (`pack_sums.py`)."""

    def keep(self, kept: Iterable[BufferedEvent], *, began: datetime, after_s: float) -> None:
        """Has the events wait for a pack, in the place of writing them."""
        with self._lock:
            self._first = self._first or self._seq + 1
            events = list(kept)
            lines, self._seq = self._spelled(events, began, after_s)
            self._held.append(lines)
            self.held += len(lines)
            for trial in {event.trial for event in events if event.trial is not None}:
                prompt, number = place_of(trial)
                least, most = self._trials.get(prompt, (number, number))
                self._trials[prompt] = [min(least, number), max(most, number)]

    def pack(self) -> bytes:
        """Writes what waits as a pack; returns its lines. Raises LogLost: it cannot be written. Nothing of it stands in
        the log then."""
        import zstandard

        if not self._held:
            return b""
        lines = b"".join(self._held)
        pack = Pack(next(self._names), self._run, self._first, self._seq, dict(sorted(self._trials.items())))
        sums = self.sums if sum(len(block.lines) for block in self.sums) == len(self._held) else []
        self._held, self.held, self._first, self._trials, self.sums = [], 0, 0, {}, []
        path, data = (
            self.path.with_name(pack.pack),
            zstandard.ZstdCompressor(LEVEL, write_checksum=True).compress(lines),
        )
        try:
            with replacing(path) as part:
                part.write_bytes(data)
            if sums:
                pack_sums.write(path, data, sums)
        except OSError as error:
            raise self._lost(path, error) from error
        with self._lock:
            self._write(json.dumps(vars(pack)).encode() + b"\n")
        return lines
