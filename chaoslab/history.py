"""Reads what a run's writers logged, merged; measures and reports know nothing else of a run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from chaoslab.events import CallFinished, Event, Fallback, PromptStarted, Retry, RunStarted, Usage

E_ = TypeVar("E_", bound=Event)
UNSEEN: frozenset[type[Event]] = frozenset({Retry, Fallback, Usage})
"""Kinds of which a run of Python functions cannot tell: the lab does not see its agent's waits, fallbacks and model."""


@dataclass(frozen=True)
class Record:
    """One line of a log: the envelope and its event."""

    ts: str
    t: float
    run: str
    trial: str | None
    writer: str
    seq: int
    event: Event


class History:
    """All events of a run, merged by (time, writer, sequence).

    `cut` counts lines that could not be read, by file name. `untold` are the kinds that another lab's log has no place for, so that
    their absence says nothing; `notes` are lines for a person on how it was read.
    """

    def __init__(
        self,
        records: Iterable[Record],
        *,
        cut: dict[str, int] | None = None,
        untold: Iterable[type[Event]] = (),
        notes: Iterable[str] = (),
    ) -> None:
        self.records = sorted(records, key=lambda r: (r.t, r.writer, r.seq))
        self.cut = cut or {}
        self.untold = frozenset(untold)
        self.notes = tuple(notes)

    @classmethod
    def read(cls, folder: Path) -> History:
        """Reads every `*.log` of a run's folder.

        Raises:
            FileNotFoundError: no such folder, or no log in it.
        """
        paths = sorted(path for path in folder.glob("*.log") if path.is_file())
        if not paths:
            raise FileNotFoundError(f"no logs in {folder}")
        records: list[Record] = []
        cut: dict[str, int] = {}
        for path in paths:
            for line in path.read_bytes().splitlines():
                record = parse_line(line)
                if record is not None:
                    records.append(record)
                elif line.strip():
                    cut[path.name] = cut.get(path.name, 0) + 1
        return cls(records, cut=cut)

    def of(self, kind: type[E_], *, trial: str | None = None) -> Iterator[tuple[Record, E_]]:
        """The events of one kind in time order, each with its line's envelope."""
        for record in self.records:
            if isinstance(record.event, kind) and (trial is None or record.trial == trial):
                yield record, record.event

    def tells(self, kind: type[Event]) -> bool:
        """Whether an event of this kind would be here if it had happened."""
        return kind not in self.untold and not (kind in UNSEEN and self.of_functions)

    def first(self, kind: type[E_]) -> E_ | None:
        return next((event for _, event in self.of(kind)), None)

    @cached_property
    def of_functions(self) -> bool:
        """Whether it tells of a Python user's own agent and functions (`lab.run`). A run of the lab's agent says what was asked."""
        run = self.first(RunStarted)
        if run is not None:
            return bool(run.world) and not run.asked
        return any(event.via == "function" for _, event in self.of(CallFinished))

    @property
    def trials(self) -> list[str]:
        """The trials in the order in which they began."""
        return [record.trial for record, _ in self.of(PromptStarted) if record.trial is not None]


def parse_line(line: bytes) -> Record | None:
    """The record of a line; None when the line is cut, foreign, or of a kind that this version does not know."""
    try:
        data = json.loads(line)
        kind = Event.kinds[data["kind"]]
        names = {f.name for f in fields(kind)}  # type: ignore[arg-type]
        event = kind(**{name: value for name, value in data.items() if name in names})
        return Record(data["ts"], float(data["t"]), data["run"], data["trial"], data["writer"], int(data["seq"]), event)
    except (ValueError, KeyError, TypeError):
        return None
