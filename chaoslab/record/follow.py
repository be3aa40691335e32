"""Reads a run's logs while this process or another writes them."""

from __future__ import annotations

import os
from collections import Counter
from math import inf
from pathlib import Path
from typing import BinaryIO

from chaoslab.base.files import open_regular
from chaoslab.core.events import RunFinished
from chaoslab.record.held import MAIN
from chaoslab.record.lines import LINE_MAX, Record, list_log_files, parse_line

PART = 1 << 19
"""The bytes that are read of another part's log at once, where the main log is read in parts."""


class Follower:
    """Reads new lines of a run's folder: each line once, in its writer's order. Files that begin later are found.
    `ended`: the run has logged its end. `more`: the main log had more than was read of it. `cut`: the number of
    unreadable lines, by file name."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[str, BinaryIO] = {}
        self._begun: dict[str, bytes] = {}
        self._got = 0
        self.ended = self.more = False
        self.cut: Counter[str] = Counter()

    def read_new_records(self, bytes_max: int = -1) -> list[Record]:
        """The events written since the last call, in the order of their time. The main log is read first, so what other
        parts wrote before one of its events comes with it. Unreadable lines are left out; an unfinished line waits for
        its end. `bytes_max`: the bytes that are read of the main log at once; -1 is all. Raises OSError: a log
        cannot be read."""
        records: list[Record] = []
        until = inf
        for path in sorted(list_log_files(self._folder), key=lambda path: path.stem != MAIN):
            if path.stem == MAIN:
                records += self._read_records(path, bytes_max)
                self.more = bytes_max >= 0 and self._got == bytes_max
                until = records[-1].t if bytes_max >= 0 and records else inf
                continue
            while part_records := self._read_records(path, bytes_max if bytes_max < 0 else PART):
                records += part_records
                if bytes_max < 0 or part_records[-1].t > until:
                    break
        return sorted(records, key=lambda record: record.t)

    def describe_log_loss(self) -> str:
        """The fate of a log that was read, in words: it was cut or deleted, or another is in its place; else
        an empty text."""
        for name, file in self._files.items():
            status = os.fstat(file.fileno())
            if status.st_size < file.tell():
                return f"{name} was cut off while it was read"
            try:
                now = (self._folder / name).stat()
            except OSError:
                return f"{name} was deleted"
            if (now.st_dev, now.st_ino) != (status.st_dev, status.st_ino):
                return f"another file is in the place of {name}"
        return ""

    def measure_progress(self) -> tuple[int, int]:
        """The bytes that were read, and those that the logs have."""
        return sum(file.tell() for file in self._files.values()), sum(
            p.stat().st_size for p in list_log_files(self._folder)
        )

    def _read_records(self, path: Path, bytes_max: int) -> list[Record]:
        """The readable events of the next lines of a log."""
        records = []
        for line in self._read_lines(path, bytes_max):
            record = parse_line(line)
            if record is not None:
                records.append(record)
            elif line.strip():
                self.cut[path.name] += 1
        self.ended = self.ended or any(type(record.event) is RunFinished for record in records)
        return records

    def _read_lines(self, path: Path, bytes_max: int) -> list[bytes]:
        file = self._files.get(path.name)
        if file is None:
            file = self._files[path.name] = open_regular(path)
        data = file.read(bytes_max)
        self._got = len(data)
        *lines, unfinished = (self._begun.get(path.name, b"") + data).split(b"\n")
        self._begun[path.name] = unfinished[: LINE_MAX + 1]  # longer than any line that is read
        return lines

    def close(self) -> None:
        for file in self._files.values():
            file.close()
        self._files.clear()

    def __enter__(self) -> Follower:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
