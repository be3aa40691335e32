"""Reads a run's logs once, in batches of whole trials, so that a long run need not be held at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import merge
from pathlib import Path

from chaoslab.core.events import AttemptEvent, Effect, PromptFinished, PromptStarted
from chaoslab.record.history import History, place_in_time, unread
from chaoslab.record.lines import Record, lines_of, log_files, parse_line

BATCH = 4096
"""The fewest events of a batch, but for the last."""


class Unordered(Exception):
    """The logs cannot be cut into batches: a line is out of order, or a trial goes on after a later one began. The run
    has to be read as one history."""


class Batches:
    """The histories of a run's batches, in time order. Together they hold each record once, in a history's order.

    A batch ends before a trial begins, where no trial is under way. `notes`, complete after the last batch: lines for
    the user on how the log was read.
    """

    def __init__(self, folder: Path, *, least: int = BATCH) -> None:
        self._folder, self._least = folder, least
        self._cut: dict[str, list[int]] = {}

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(unread(name, numbers) for name, numbers in sorted(self._cut.items()))

    def __iter__(self) -> Iterator[History]:
        """The batches.

        Raises:
            FileNotFoundError: no such folder, or no log in it. OSError: a log cannot be read. Unordered: the rest does
                not follow what was given.
        """
        paths = log_files(self._folder)
        if not paths:
            raise FileNotFoundError(f"no logs in {self._folder}")
        self._cut.clear()
        writers = [self._records(path) for path in paths]
        return self._whole(writers[0] if len(writers) == 1 else merge(*writers, key=place_in_time))

    def _records(self, path: Path) -> Iterator[Record]:
        """The records of one log, which are in order."""
        before: Record | None = None
        for number, line in enumerate(lines_of(path), 1):
            record = parse_line(line)
            if record is not None:
                if before is not None and record.t <= before.t and place_in_time(record) < place_in_time(before):
                    raise Unordered(f"{path.name}: line {number} is earlier than the one before")
                before = record
                yield record
            elif line.strip():
                self._cut.setdefault(path.name, []).append(number)

    def _whole(self, records: Iterable[Record]) -> Iterator[History]:
        """The records, cut where no trial is under way."""
        batch: list[Record] = []
        here: set[str] = set()
        past: set[str] = set()
        under_way: set[str | None] = set()
        for record in records:
            kind, trial = type(record.event), record.trial
            if trial is None:
                if issubclass(kind, AttemptEvent | Effect):
                    under_way.add(None)  # its parts are joined by number, and no event tells its end
            else:
                if kind is PromptStarted:
                    if len(batch) >= self._least and not under_way:
                        yield History(batch, ordered=True)
                        past |= here
                        batch, here = [], set()
                    under_way.add(trial)
                elif kind is PromptFinished:
                    under_way.discard(trial)
                if trial not in here:
                    if trial in past:
                        raise Unordered(f"trial {trial} goes on after others began")
                    here.add(trial)
            batch.append(record)
        yield History(batch, ordered=True)
