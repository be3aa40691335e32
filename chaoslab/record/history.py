"""Reads the logs of a run's writers and merges them. Measures and reports know nothing else of a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property
from itertools import chain
from math import inf
from operator import attrgetter, itemgetter
from pathlib import Path
from sys import intern
from typing import Protocol, TypeVar, cast

from chaoslab.base.garbage import pause_collector
from chaoslab.core import events
from chaoslab.record.gaps import Gap, describe_gaps, find_gaps, find_trials_with_gaps
from chaoslab.record.held import has_live_writer
from chaoslab.record.lines import Record, iterate_records, list_log_files
from chaoslab.record.rulings import FILE as RULINGS
from chaoslab.record.rulings import Rulings
from chaoslab.record.spoken import SILENT, JudgeOpinions, KeptJudgeReplies

E_ = TypeVar("E_", bound=events.Event)
A_ = TypeVar("A_", bound=events.AttemptEvent)
Place = tuple[str | None, str, int, int]
"""An attempt: (trial, target, request, attempt)."""
UNSEEN: frozenset[type[events.Event]] = frozenset({events.Retry, events.Fallback, events.Usage})
"""Kinds that a run of Python functions need not log: the lab does not see the agent's waits and fallbacks, and its
model only if that is one of the services."""
IN_PROCESS = ("function", "service")
"""The ways of calls that only a run of a user's own agent and functions has (`CallFinished.via`)."""
NAMED = 2
"""The most unreadable lines that a note names; it counts the others."""


class History:
    """All events of a run, merged by (time, writer, sequence).

    `cut_lines`: the numbers of the unreadable lines, by file name. `notes`: lines for the user on how the log was read.
    `rulings`: of the scenario that ran it, if one did. `running`: the process that writes its main log lived when it
    was read.
    `spoken`: what people and models said of its answers. `gaps`: the lines that its logs have lost.
    """

    gaps: Sequence[Gap] = ()
    until = inf
    """The beginning of the first trial behind this history, in seconds since the run's start."""

    def __init__(
        self,
        records: Iterable[Record],
        *,
        cut: Mapping[str, Sequence[int]] | None = None,
        notes: Iterable[str] = (),
        ordered: bool = False,
        rulings: Rulings | None = None,
        running: bool = False,
        spoken: JudgeOpinions = SILENT,
        gaps: Sequence[Gap] = (),
    ) -> None:
        """Merges the records. `ordered`: they are in order already."""
        self.records = list(records) if ordered else sorted(records, key=make_sort_key)
        self.cut_lines = {name: tuple(numbers) for name, numbers in (cut or {}).items()}
        self.rulings, self.running, self.spoken, self.gaps = rulings, running, spoken, gaps
        self.notes = (*notes, *describe_lost_lines(self.cut_lines, gaps))

    def __iter__(self) -> Iterator[Record]:
        """The records in time order."""
        return iter(self.records)

    def __len__(self) -> int:
        """The number of records."""
        return len(self.records)

    def __bool__(self) -> bool:
        """True, also without a record."""
        return True

    def __getitem__(self, index: int) -> Record:
        """The record at this place in time order, from 0; from the end if it is negative."""
        return self.records[index]

    def __repr__(self) -> str:
        run, trials = self.run_name or "none", len(self.trials)
        return f"History(run {run}: {trials} {'trial' if trials == 1 else 'trials'}, {len(self.records)} events)"

    @classmethod
    def read(cls, folder: Path) -> History:
        """Reads every `*.log` of a run's folder. Raises FileNotFoundError: no such folder, or no log in it. OSError: a
        log cannot be read."""
        paths = list_log_files(folder)
        if not paths:
            raise FileNotFoundError(f"no logs in {folder}")
        logs: dict[str, list[Record]] = {}
        cut: dict[str, list[int]] = {}
        rulings, running = Rulings.read(folder), has_live_writer(folder)
        with pause_collector():
            for path in paths:
                unread = list[int]()
                logs[path.name] = [*iterate_records(path, cut=unread.append)]
                if unread:
                    cut[path.name] = unread
            replies, records = KeptJudgeReplies.read(folder), chain.from_iterable(logs.values())
            gaps = find_gaps(folder, logs, cut)
            history = cls(
                records,
                cut={**cut, **find_unreadable_rulings(rulings), **replies.cut},
                rulings=rulings,
                running=running,
                gaps=gaps,
            )
            history.spoken = replies.judge_opinions
            history.notes += replies.notes
            return history

    @property
    def unreadable_counts(self) -> dict[str, int]:
        """The number of unreadable lines by file name."""
        return {name: len(numbers) for name, numbers in self.cut_lines.items()}

    def find_events(self, kind: type[E_], *, trial: str | None = None) -> Iterator[tuple[Record, E_]]:
        """The events of one kind in time order, each with its line's envelope."""
        records: Sequence[Record] = self._records_by_kind.get(kind, ())
        if not records and "kind" not in vars(kind):  # a base of several kinds
            records = [record for record in self.records if isinstance(record.event, kind)]
        if trial is not None and records:
            return iter([(record, cast(E_, record.event)) for record in records if record.trial == trial])
        return zip(records, cast(Iterator[E_], map(_event, records)), strict=True)

    def find_attempt_events(self, kind: type[A_]) -> Sequence[tuple[Record, A_, Place]]:
        """The events of one kind of an attempt in time order, each with its line's envelope and its attempt."""
        places = self._attempt_events_cache.get(kind)
        if places is None:
            places = self._attempt_events_cache[kind] = [
                (record, event, (record.trial, event.at.target, event.at.request, event.at.attempt))
                for record, event in self.find_events(kind)
            ]
        return cast(Sequence[tuple[Record, A_, Place]], places)

    @property
    def run_name(self) -> str:
        """The run's name; empty without any event."""
        return self.records[0].run if self.records else ""

    def find_first_event(self, kind: type[E_]) -> E_ | None:
        return next((event for _, event in self.find_events(kind)), None)

    @property
    def event_kinds(self) -> Set[type[events.Event]]:
        """The kinds of events that there are."""
        return self._records_by_kind.keys()

    @cached_property
    def _records_by_kind(self) -> dict[type[events.Event], list[Record]]:
        """The records by kind, in one pass: a report asks for thirty kinds, and a verdict of each trial for ten."""
        by_kind: dict[type[events.Event], list[Record]] = {}
        for record in self.records:
            kind = type(record.event)
            if kind in by_kind:
                by_kind[kind].append(record)
            else:
                by_kind[kind] = [record]
        return by_kind

    @cached_property
    def attempt_keys(self) -> set[Place]:
        """The attempts at calls."""
        return {
            *map(_place, self.find_attempt_events(events.CallStarted)),
            *map(_place, self.find_attempt_events(events.CallFinished)),
        }

    @cached_property
    def failed_attempts(self) -> Sequence[tuple[Record, events.CallFinished, Place]]:
        """The ends of the attempts that failed or tell an error, as in `find_attempt_events`. Most do neither."""
        return [end for end in self.find_attempt_events(events.CallFinished) if end[1].error or not end[1].ok]

    @cached_property
    def gaps_by_trial(self) -> Mapping[str, str]:
        """The trials that may have lost lines, each with a gap in words. What happened in them is not known."""
        if not self.gaps:
            return {}
        ended = {record.trial for record, _ in self.find_events(events.PromptFinished)}
        spans: dict[str, tuple[float, float]] = {}
        for record in self.records:
            if record.trial is not None:
                begin, _ = spans.get(record.trial, (record.t, record.t))
                spans[record.trial] = begin, record.t if record.trial in ended else inf
        return find_trials_with_gaps(self.gaps, spans, until=self.until)

    @cached_property
    def given_up_attempts(self) -> frozenset[Place]:
        """The attempts that their own agent gave up, or that the end of their trial cut, and that met no fault before:
        the loser of two hedged requests, or what was under way in a group of tasks that ended. They neither failed nor
        succeeded. A call that was cancelled because a fault held it back has failed."""
        gone = [at for _, event, at in self.failed_attempts if event.is_cancelled]
        return (
            frozenset(gone).difference(map(_place, self.find_attempt_events(events.FaultWitnessed)))
            if gone
            else frozenset()
        )

    @cached_property
    def _attempt_events_cache(self) -> dict[type[events.Event], Sequence[tuple[Record, events.Event, Place]]]:
        """The results of `find_attempt_events`: ten measures ask for the attempts of one kind."""
        return {}

    @cached_property
    def is_user_agent_run(self) -> bool:
        """True if the run is of a user's own agent and functions (`lab.run`). A run of the lab's agent logs its prompts
        in `asked`."""
        run = self.find_first_event(events.RunStarted)
        return (
            any(e.via in IN_PROCESS for _, e in self.find_events(events.CallFinished))
            if run is None
            else is_user_agent_run(run)
        )

    @cached_property
    def begun_trials(self) -> Sequence[str]:
        """The trials of which there is the beginning, in the order in which they began."""
        return [
            intern(record.trial) for record, _ in self.find_events(events.PromptStarted) if record.trial is not None
        ]

    @cached_property
    def trials(self) -> Sequence[str]:
        """The same, and then those whose beginning the log has lost."""
        begun = {*self.begun_trials} if self.gaps_by_trial else set()
        return [*self.begun_trials, *(intern(trial) for trial in self.gaps_by_trial if trial not in begun)]


def is_user_agent_run(run: events.RunStarted) -> bool:
    """True if the run is of a user's own agent and functions."""
    return bool(run.world) and not run.asked


_event = attrgetter("event")
_place = itemgetter(2)


def make_sort_key(record: Record) -> tuple[float, str, int]:
    """The place of a record in a history: by time, writer and sequence."""
    return record.t, record.writer, record.seq


def find_unreadable_rulings(rulings: Rulings | None) -> dict[str, Sequence[int]]:
    """The numbers of the unreadable lines of rulings, by file name."""
    return {RULINGS: rulings.cut_lines} if rulings is not None and rulings.cut_lines else {}


def describe_lost_lines(cut: Mapping[str, Sequence[int]], gaps: Sequence[Gap]) -> list[str]:
    """The notes on the lines that could not be read, by file name, and on those that are lost."""
    return [
        *(describe_unreadable_lines(name, numbers) for name, numbers in sorted(cut.items())),
        *describe_gaps(gaps, cut),
    ]


def describe_unreadable_lines(name: str, numbers: Sequence[int]) -> str:
    """A note of the lines of a log that could not be read, in one line."""
    if len(numbers) == 1:
        return f"{name}: line {numbers[0]} could not be read"
    named, rest = numbers[:NAMED], len(numbers) - NAMED
    listed_names = f"{', '.join(map(str, named))} and {rest} more" if rest else " and ".join(map(str, named))
    return f"{name}: lines {listed_names} could not be read"


class WithHistory(Protocol):
    """A trial as `lab.run` gives it."""

    @property
    def history(self) -> History: ...
