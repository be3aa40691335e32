"""Reads a run's logs once, in histories of whole trials, so that a long run need not be held at once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from functools import cached_property, partial
from heapq import merge
from math import inf
from pathlib import Path

from chaoslab.core.events import AttemptEvent, Effect, PromptFinished, PromptStarted
from chaoslab.record.gaps import Gap, find_gap_at_end, find_gaps_between, find_missing_logs, read_expected_line_counts
from chaoslab.record.held import has_live_writer
from chaoslab.record.history import History, describe_lost_lines, find_unreadable_rulings, make_sort_key
from chaoslab.record.lines import Record, iterate_records, list_log_files
from chaoslab.record.rulings import Rulings
from chaoslab.record.spoken import SILENT, KeptJudgeReplies

EVENTS_MIN = 1024
"""The fewest events of a history, but for the last: few enough to stay in a processor's own cache."""
_MARKS = (PromptStarted, PromptFinished)
"""The events at which a trial begins or ends."""
_WITHOUT_END = (AttemptEvent, Effect)


class Unordered(Exception):
    """The logs cannot be cut into trials: a line is out of order, or a trial goes on after a later one began. The run
    has to be read as one history."""


class TrialStream:
    """The histories of a run, each of whole trials, in time order. Together they hold each record once.

    One ends before a trial begins, where no trial is under way. `notes`, complete after the last: lines for the user on
    how the log was read.
    """

    def __init__(self, folder: Path, *, least: int = EVENTS_MIN) -> None:
        """`least`: the fewest events of a history."""
        self._folder, self._least = folder, least
        self._cut: dict[str, list[int]] = {}
        self._kept = KeptJudgeReplies()
        self._gaps: list[Gap] = []
        self.running = False
        """As in `History`."""

    @cached_property
    def rulings(self) -> Rulings | None:
        """The rulings of the scenario that ran it. Raises OSError: they cannot be read."""
        return Rulings.read(self._folder)

    @property
    def notes(self) -> tuple[str, ...]:
        unread = {**self._cut, **find_unreadable_rulings(self.rulings), **self._kept.cut}
        return (*describe_lost_lines(unread, self._gaps), *self._kept.notes)

    def __iter__(self) -> Iterator[History]:
        """Raises FileNotFoundError: no such folder, or no log in it. OSError: a log cannot be read. Unordered: the rest
        does not follow what was given."""
        paths = list_log_files(self._folder)
        if not paths:
            raise FileNotFoundError(f"no logs in {self._folder}")
        self._cut.clear()
        self.running, ends = has_live_writer(self._folder), read_expected_line_counts(self._folder)
        self._kept = KeptJudgeReplies.read(self._folder)
        self._gaps = find_missing_logs(ends, [path.name for path in paths])
        writers = [self._iterate_records(path, ends.get(path.name, 0)) for path in paths]
        return self._iterate_histories(writers[0] if len(writers) == 1 else merge(*writers, key=make_sort_key))

    def _iterate_records(self, path: Path, end_min: int) -> Iterator[Record]:
        """The records of one log, which are in order. `end_min`: `least` of `gaps.find_gaps_of_log`."""
        before: Record | None = None
        for record in iterate_records(path, cut=partial(self._note_cut_line, path.name)):
            if before is None or record.seq != before.seq + 1:
                self._gaps += find_gaps_between(path.name, before, [record])
            if before is not None and (
                record.t < before.t or record.seq <= before.seq or record.writer != before.writer
            ):
                raise Unordered(f"{path.name}: a line is earlier than the one before, or not of its writer")
            before = record
            yield record
        self._gaps += find_gap_at_end(path.name, before, least=end_min, cut=self._cut.get(path.name, ()))

    def _note_cut_line(self, log: str, number: int) -> None:
        self._cut.setdefault(log, []).append(number)

    def _iterate_histories(self, records: Iterable[Record]) -> Iterator[History]:
        """The records, cut where no trial is under way."""
        batch: list[Record] = []
        batch_trials: set[str] = set()
        past: set[str] = set()
        under_way: set[str | None] = set()
        last = ""
        for record in records:
            trial, kind = record.trial, type(record.event)
            if trial != last or kind in _MARKS:
                if trial is None:
                    if issubclass(kind, _WITHOUT_END):
                        under_way.add(None)  # its parts are joined by number, and no event tells its end
                else:
                    if kind is PromptStarted:
                        if len(batch) >= self._least and not under_way:
                            yield self._make_history(batch, until=record.t)
                            past |= batch_trials
                            batch, batch_trials = [], set()
                        under_way.add(trial)
                    elif kind is PromptFinished:
                        under_way.discard(trial)
                    if trial not in batch_trials:
                        if trial in past:
                            raise Unordered(f"trial {trial} goes on after others began")
                        batch_trials.add(trial)
                        if kind not in _MARKS:
                            under_way.add(trial)  # its beginning is lost, so a gap far behind may be one of its own
                    last = trial
            batch.append(record)
        yield self._make_history(batch, until=inf)

    def _make_history(self, records: list[Record], *, until: float) -> History:
        history = History(
            records, ordered=True, running=self.running, spoken=self._kept.judge_opinions, gaps=self._gaps
        )
        history.until = until
        return history


def read_trial_history(folder: Path, trials: Collection[str | None]) -> History:
    """The history of these trials of a run alone, by key, and of none if None is among them. Raises
    FileNotFoundError, OSError: as `TrialStream`."""
    try:
        return _collect_history(TrialStream(folder), trials)
    except Unordered:
        return _collect_history([History.read(folder)], trials)


def _collect_history(parts: Iterable[History], trials: Collection[str | None]) -> History:
    chosen_records, torn, spoken = list[Record](), dict[str, str](), SILENT
    for part in parts:
        chosen_records += [record for record in part if record.trial in trials]
        torn |= {trial: gap for trial, gap in part.gaps_by_trial.items() if trial in trials}
        spoken = part.spoken
    history = History(chosen_records, ordered=True, spoken=spoken)
    history.gaps_by_trial = torn  # only the whole run tells which trials a gap touches
    return history
