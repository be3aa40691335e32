"""Reads a run's logs once, in batches of whole trials, so that a long run need not be held at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cached_property, partial
from heapq import merge
from itertools import chain
from math import inf
from operator import attrgetter
from pathlib import Path
from typing import cast

from chaoslab.core.events import AttemptEvent, Effect, Event, PromptFinished, PromptStarted
from chaoslab.record.gaps import Gap, at_end, between, ends_of, missing
from chaoslab.record.held import is_written
from chaoslab.record.history import A_, E_, History, Place, cut_of, notes_of, place_in_time
from chaoslab.record.lines import Record, kind_of, log_files, records_of, whole
from chaoslab.record.packs import Packs
from chaoslab.record.rulings import Rulings
from chaoslab.record.spoken import SILENT, KeptReplies, Spoken

BATCH = 1024
"""The fewest events of a batch, but for the last: few enough to stay in a processor's own cache (1 MiB)."""
_t, _seq, _writer = attrgetter("t"), attrgetter("seq"), attrgetter("writer")
_WITHOUT_END = (AttemptEvent, Effect)


class Unordered(Exception):
    """The logs cannot be cut into batches: a line is out of order, or a trial goes on after a later one began. The run
    has to be read as one history."""


class _Marks(dict[type, bool]):
    """By the class of records and of what stands for them: True if a trial may begin or end there. Records are of any
    kind."""

    def __missing__(self, of: type) -> bool:
        self[of] = mark = of is Record or of.of in (PromptStarted, PromptFinished)  # type: ignore[attr-defined]
        return mark


class Batch(History):
    """The history of whole trials, whose events are looked at and not kept: `of` and `placed` give structs that stand
    for most records and for their events (`lines.records_of`)."""

    def __init__(
        self, lines: Sequence[Record], by_kind: dict[type[Event], list[Record]], *, plain: bool, running: bool,
        spoken: Spoken, gaps: Sequence[Gap], until: float,
    ) -> None:  # fmt: skip
        """`lines`: records, and what stands for them. `by_kind`: the same, by the kind of the event. `plain`: none is a
        record. The others are as in `History`."""
        self.lines, self._of_kind, self._plain = lines, by_kind, plain
        self.cut_lines, self.notes, self.rulings = {}, (), None
        self.running, self.gaps, self.until, self.spoken = running, gaps, until, spoken

    @classmethod
    def of_lines(cls, lines: Sequence[Record], *, running: bool, spoken: Spoken) -> Batch:
        """The history of these lines, in the order of their time."""
        by_kind: dict[type[Event], list[Record]] = {}
        for line in lines:
            by_kind.setdefault(kind_of(line), []).append(line)
        plain = not any(type(line) is Record for line in lines)
        return cls(lines, by_kind, plain=plain, running=running, spoken=spoken, gaps=(), until=inf)

    @cached_property
    def records(self) -> list[Record]:  # type: ignore[override]
        return [whole(line) for line in self.lines]

    @property
    def run(self) -> str:
        return self.lines[0].run if self.lines else ""

    @property
    def _lines(self) -> Sequence[Record]:
        return self.lines

    def of(self, kind: type[E_], *, trial: str | None = None) -> Iterator[tuple[Record, E_]]:
        found = self._of_kind.get(kind, ())
        if not self._plain or trial is not None or (not found and "kind" not in vars(kind)):
            return super().of(kind, trial=trial)
        return zip(found, cast(Sequence[E_], found), strict=True)

    def placed(self, kind: type[A_]) -> Sequence[tuple[Record, A_, Place]]:
        found = self._placed.get(kind)
        if found is None:
            found = self._placed[kind] = [
                (record, event, (record.trial, event.target, event.request, event.attempt))
                for record, event in self.of(kind)
            ]
        return cast(Sequence[tuple[Record, A_, Place]], found)

    def first(self, kind: type[E_]) -> E_ | None:
        """The first event of a kind, which may be kept."""
        return next((whole(record).event for record, _ in self.of(kind)), None)  # type: ignore[return-value]


class Batches:
    """The histories of a run's batches, in time order. Together they hold each record once, in a history's order.

    A batch ends before a trial begins, where no trial is under way. `notes`, complete after the last batch: lines for
    the user on how the log was read.
    """

    def __init__(self, folder: Path, *, least: int = BATCH, packs: Callable[[], Packs] = Packs) -> None:
        """`packs`: makes what opens the packs."""
        self._folder, self._least, self._opened = folder, least, packs
        self._cut: dict[str, list[int]] = {}
        self._run = ""
        self._kept, self._spoken = KeptReplies(), SILENT
        self._trials: set[str] = set()
        self._gaps: list[Gap] = []
        self._packs = packs()
        self.running = False
        """As in `History`."""

    @cached_property
    def rulings(self) -> Rulings | None:
        """The rulings of the scenario that ran it. Raises OSError: they cannot be read."""
        return Rulings.read(self._folder)

    @property
    def whole(self) -> bool:
        """True if nothing is lost, but for packs that were left out, and nobody said anything of its answers."""
        kept = self._kept
        said = kept.labels or kept.replies or kept.trust or kept.cut or kept.notes
        return not (said or self._cut or self._lost or self._packs.damaged)

    @property
    def _lost(self) -> list[Gap]:
        """The gaps that are not those of packs which were left out."""
        return [gap for gap in self._gaps if not self._packs.spared(gap.first, gap.last)]

    @property
    def notes(self) -> tuple[str, ...]:
        found = {**self._cut, **cut_of(self.rulings), **self._kept.cut}
        return (*self._packs.damaged, *notes_of(found, self._lost), *self._kept.notes_on(self._run, self._trials))

    def __iter__(self) -> Iterator[Batch]:
        """The batches. Raises FileNotFoundError: no such folder, or no log in it. OSError: a log cannot be read.
        Unordered: the rest does not follow what was given. Incomplete: as `History.read`."""
        paths = log_files(self._folder)
        if not paths:
            raise FileNotFoundError(f"no logs in {self._folder}")
        self._cut.clear()
        self._packs = self._opened()
        self.running, ends = is_written(self._folder), ends_of(self._folder)
        self._run, self._kept = "", KeptReplies.read(self._folder)
        self._gaps = missing(ends, [path.name for path in paths])
        writers = [chain.from_iterable(self._records(path, ends.get(path.name, 0))) for path in paths]
        return self._whole(writers[0] if len(writers) == 1 else merge(*writers, key=place_in_time))

    def _records(self, path: Path, least: int) -> Iterator[Sequence[Record]]:
        """The records of one log, which are in order, in lists. `least`: as in `gaps.of_log`."""
        before: Record | None = None
        cut = partial(self._note_cut, path.name)
        for records in records_of(path, self._packs, cut=cut):
            if records:
                if not _ordered(records if before is None else [before, *records]):
                    raise Unordered(f"{path.name}: a line is earlier than the one before, or not of its writer")
                self._gaps += between(path.name, before, records)
                before = records[-1]
                yield records
        self._gaps += at_end(path.name, before, least=least, cut=self._cut.get(path.name, ()))

    def _note_cut(self, log: str, number: int) -> None:
        self._cut.setdefault(log, []).append(number)

    def _whole(self, records: Iterable[Record]) -> Iterator[Batch]:
        """The records, cut where no trial is under way."""
        batch: list[Record] = []
        by_class: defaultdict[type, list[Record]] = defaultdict(list)
        marks = _Marks()
        here: set[str] = set()
        past: set[str] = set()
        under_way: set[str | None] = set()
        last = ""
        for record in records:
            trial, of = record.trial, type(record)
            if trial != last or marks[of]:
                kind = kind_of(record)
                if trial is None:
                    if issubclass(kind, _WITHOUT_END):
                        under_way.add(None)  # its parts are joined by number, and no event tells its end
                else:
                    if kind is PromptStarted:
                        if len(batch) >= self._least and not under_way:
                            yield self._batch(batch, by_class, until=record.t)
                            past |= here
                            batch, by_class, here = [], defaultdict(list), set()
                        under_way.add(trial)
                    elif kind is PromptFinished:
                        under_way.discard(trial)
                    if trial not in here:
                        if trial in past:
                            raise Unordered(f"trial {trial} goes on after others began")
                        here.add(trial)
                    last = trial
            batch.append(record)
            by_class[of].append(record)
        yield self._batch(batch, by_class, until=inf)

    def _batch(self, lines: Sequence[Record], by_class: dict[type, list[Record]], *, until: float) -> Batch:
        if Record in by_class:
            batch = Batch.of_lines(lines, running=self.running, spoken=self._spoken)
            batch.gaps, batch.until = self._gaps, until
        else:
            by_kind = {kind_of(found[0]): found for found in by_class.values()}
            batch = Batch(
                lines, by_kind, plain=True, running=self.running, spoken=self._spoken, gaps=self._gaps, until=until
            )
        if not self._run:
            self._run = batch.run
            batch.spoken = self._spoken = self._kept.spoken(self._run)
        if self._kept.labels:
            self._trials.update(batch.trials)
        return batch


def _ordered(records: Sequence[Record]) -> bool:
    """True if the records of one log are in the order of a history, and numbered in that order by one writer."""
    times, seqs = [*map(_t, records)], [*map(_seq, records)]
    if times != sorted(times) or seqs != sorted(seqs):
        return False
    writers = [*map(_writer, records)]
    return writers.count(writers[0]) == len(writers) and len({*seqs}) == len(seqs)


def stories(folder: Path, trials: Collection[str]) -> History:
    """The history of these trials of a run alone, by key; the others are not held. Raises FileNotFoundError, OSError,
    Incomplete: as `Batches`."""
    batches, found, spoken = Batches(folder, packs=lambda: Packs(trials)), list[Record](), SILENT
    try:
        for batch in batches:
            found += [whole(line) for line in batch.lines if line.trial in trials]
            spoken = batch.spoken
    except Unordered:
        whole_run = History.read(folder, trials=trials)
        found, spoken = [record for record in whole_run if record.trial in trials], whole_run.spoken
    return History(found, ordered=True, spoken=spoken)
