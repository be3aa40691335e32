"""Lines that the logs of a run have lost, and the trials that this touches.

Each writer numbers its lines from 1 (`seq`). A number that is missing or stands twice, an end before the last line that
`run_finished` counts, and a log of `run.json` that is not there are gaps. A lost line was written between the lines
around it, so any trial whose time covers that may have had it.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from math import inf
from operator import attrgetter
from pathlib import Path
from typing import Any

from chaoslab.base import files
from chaoslab.core.events import PromptStarted, RunFinished
from chaoslab.record.held import MAIN
from chaoslab.record.lines import Record, list_log_files, parse_line

TAIL = 1 << 17
"""The bytes at the end of a log in which its last line is sought."""


@dataclass(frozen=True)
class Gap:
    """One gap of a log. `first`, `last`: the numbers of the lines; `last` is 0 if the whole log is missing. `since`,
    `until`: seconds since the run's start between which they were written. `beside`: the trials of the lines around
    them. `double`: they stand twice."""

    log: str
    first: int
    last: int
    since: float = -inf
    until: float = inf
    beside: tuple[str | None, ...] = ()
    double: bool = False

    @property
    def description(self) -> str:
        """The gap in words, as in "line 41 of messaging.log is lost"."""
        if not self.last:
            return f"{self.log} is lost"
        is_single = self.first == self.last
        lines = f"line {self.first}" if is_single else f"lines {self.first} to {self.last}"
        return f"{lines} of {self.log} {'is' if is_single else 'are'} {'there twice' if self.double else 'lost'}"


_place, _seq = attrgetter("log", "first"), attrgetter("seq")


def find_gaps(folder: Path, logs: Mapping[str, Sequence[Record]], cut: Mapping[str, Sequence[int]]) -> list[Gap]:
    """The gaps of a run, whatever the order of its records. `logs`: the records of each log, by its file's name. `cut`:
    the numbers of the lines that could not be read."""
    ends = read_expected_line_counts(folder)
    gaps = find_missing_logs(ends, logs)
    for name, records in logs.items():
        gaps += find_gaps_of_log(name, records, least=ends.get(name, 0), cut=cut.get(name, ()))
    return gaps


def find_gaps_of_log(log: str, records: Sequence[Record], *, least: int, cut: Sequence[int]) -> list[Gap]:
    """The gaps of one log, whatever the order of its records. `least`: the number of lines that it had at the run's
    end. `cut`: the numbers of its lines that could not be read."""
    writers: dict[str, list[Record]] = {}
    for record in records:
        writers.setdefault(record.writer, []).append(record)
    gaps: list[Gap] = []
    for own_records in writers.values():
        own_records.sort(key=_seq)
        gaps += find_gaps_between(log, None, own_records)
    return gaps + find_gap_at_end(log, records[-1] if len(writers) == 1 else None, least=least, cut=cut)


def find_gaps_between(log: str, before: Record | None, records: Sequence[Record]) -> list[Gap]:
    """The gaps between records of one writer, sorted by number. `before`: the record before them."""
    first = before.seq + 1 if before is not None else 1
    if [*map(_seq, records)] == [*range(first, first + len(records))]:
        return []
    gaps = []
    for record in records:
        seq, since, trial = (before.seq, before.t, before.trial) if before is not None else (0, -inf, None)
        if record.seq == seq:
            gaps.append(Gap(log, seq, seq, record.t, record.t, (record.trial,), double=True))
        elif record.seq > seq + 1:
            # What was written before a trial began is no line of it.
            beside = (trial,) if type(record.event) is PromptStarted else (trial, record.trial)
            gaps.append(Gap(log, seq + 1, record.seq - 1, since, record.t, beside))
        before = record
    return gaps


def find_gap_at_end(log: str, last: Record | None, *, least: int, cut: Sequence[int]) -> list[Gap]:
    """The gap behind the last record of a log; the other arguments are those of `find_gaps_of_log`."""
    if last is not None and type(last.event) is RunFinished:
        return []
    seq, since, beside = (last.seq, last.t, (last.trial,)) if last is not None else (0, -inf, ())
    end = max(least, cut[-1] if cut else 0)
    return [Gap(log, seq + 1, end, since, inf, beside)] if end > seq else []


def read_expected_line_counts(folder: Path) -> dict[str, int]:
    """The number of lines that each log has at least, by its file's name; 0 if that is not known, for the logs that
    `run.json` names. The main log's own is not among them: its end is the run's."""
    ends: dict[str, int] = {}
    try:
        run = files.read_json(folder / "run.json")
        named: Any = run.get("writers") if isinstance(run, dict) else None
    except files.Unreadable:
        named = None
    if isinstance(named, list):
        # A name with a slash would lead out of the folder.
        ends = {f"{writer}.log": 0 for writer in named if isinstance(writer, str) and "/" not in writer}
    path = folder / f"{MAIN}.log"
    end = read_last_record(path) if path.is_file() else None
    if end is not None and isinstance(end.event, RunFinished):
        ends |= {f"{writer}.log": lines for writer, lines in end.event.lines.items()}
    return ends


def count_writer_lines(folder: Path) -> dict[str, int]:
    """The number of lines that each writer of a run but its main one has written so far. Raises OSError: a log cannot
    be read."""
    last = {path.stem: read_last_record(path) for path in list_log_files(folder) if path.stem != MAIN}
    return {writer: record.seq for writer, record in last.items() if record is not None}


def read_last_record(path: Path) -> Record | None:
    """The last record of a log; None if its last line is none."""
    with files.open_regular(path) as log:
        log.seek(max(0, path.stat().st_size - TAIL))
        lines = log.read().splitlines()
    return parse_line(lines[-1]) if lines else None


def find_missing_logs(ends: Mapping[str, int], names: Iterable[str]) -> list[Gap]:
    """The logs that are not there. `ends`: as in `read_expected_line_counts`; `names`: the names of those that are."""
    return [Gap(name, 1, 0) for name in sorted({*ends}.difference(names))]


def find_trials_with_gaps(
    gaps: Sequence[Gap], spans: Mapping[str, tuple[float, float]], *, until: float = inf
) -> dict[str, str]:
    """The trials that gaps touch, each with a gap in words. `spans`: the times of the first and the last record of each
    trial, the latter infinite if it has no end. What is written for a trial after its end, such as a late effect, comes
    before the next one begins. `until`: the beginning of the first trial that is not among them. A run may have many
    gaps, so no trial looks at every one."""
    begins = sorted({begin for begin, _ in spans.values()} | {until})
    beside: dict[str | None, Gap] = {}
    for gap in sorted(gaps, key=_place):
        for trial in gap.beside:
            beside.setdefault(trial, gap)
    ordered = sorted(gaps, key=attrgetter("since", "log", "first"))
    sinces = [gap.since for gap in ordered]
    latest = [*accumulate(ordered, partial(max, key=attrgetter("until")))]
    torn_trials: dict[str, str] = {}
    for trial, (begin, end) in spans.items():
        later = bisect_left(begins, end)
        trial_over = begins[later] if later < len(begins) else inf
        before = bisect_left(
            sinces, trial_over
        )  # of the gaps that begin before it is over, the one that ends last decides
        if trial in beside or (before and latest[before - 1].until > begin):
            torn_trials[trial] = (beside.get(trial) or latest[before - 1]).description
    return torn_trials


def describe_gaps(gaps: Sequence[Gap], cut: Mapping[str, Sequence[int]]) -> list[str]:
    """A note for each gap, but for those whose lines are all there and could not be read. `cut`: their numbers, by
    file name."""
    return [
        gap.description
        for gap in sorted(gaps, key=_place)
        if not gap.last
        or gap.double
        or sum(gap.first <= number <= gap.last for number in cut.get(gap.log, ())) <= gap.last - gap.first
    ]
