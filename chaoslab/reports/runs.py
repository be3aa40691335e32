"""The list of a folder's runs, newest first: time, world, seed, prompts, outcomes and witnessed faults.

Only the lines of a log that hold these are parsed, since a folder may hold hundreds of runs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

from chaoslab.analysis.verdict.guard import guarded
from chaoslab.analysis.verdict.judge import verdicts
from chaoslab.analysis.verdict.seen import JUDGED
from chaoslab.analysis.verdict.table import Outcome
from chaoslab.base.jsonable import line
from chaoslab.core.events import Event, FaultWitnessed, RunFinished, RunStarted
from chaoslab.record import runs
from chaoslab.record.held import is_written
from chaoslab.record.history import History
from chaoslab.record.lines import Record, lines_of, log_files, parse_line
from chaoslab.reports import folder as places
from chaoslab.reports.page import WIDTH, count, wrapped
from chaoslab.reports.trials import counted

COUNTED_MAX = 64 * 2**20
"""The largest logs, in bytes, whose outcomes are counted."""
BEGINNING = 100
"""The lines of a larger log that are searched for its first events."""
NAME_WIDTH = 30
KINDS: tuple[type[Event], ...] = (RunStarted, RunFinished, *JUDGED)
_SAYS = re.compile(b'"kind": ?"(?:%s)"' % "|".join(kind.kind for kind in KINDS).encode())


@dataclass(frozen=True)
class RunLine:
    """One run of the list. `outcomes`: None if they were not counted. `trouble`: the reason why it cannot be read, or
    empty."""

    folder: Path
    began: datetime
    world: str = ""
    seed: int | None = None
    prompts: int = 0
    outcomes: Counter[Outcome] | None = None
    witnessed: int | None = None
    ended: str = ""
    trouble: str = ""

    def told(self) -> str:
        """The run in lines of at most 80 columns."""
        head = f"{line(self.folder.name, NAME_WIDTH)} · {self.began:%Y-%m-%d %H:%M} UTC"
        if self.trouble:
            return "\n".join([head, *wrapped(self.trouble, indent="  ")])
        seed = "not known" if self.seed is None else self.seed
        head = line(f"{head} · {self.world or 'world not known'} · seed {seed}", WIDTH)
        outcomes = "too large to count outcomes" if self.outcomes is None else counted(self.outcomes)
        faults = "" if self.witnessed is None else f"; {count(self.witnessed, 'fault')} witnessed"
        ended = "" if self.ended in ("", "done") else f"; {self.ended}"
        return "\n".join([head, *wrapped(f"{count(self.prompts, 'trial')}: {outcomes}{faults}{ended}", indent="  ")])

    def plain(self) -> dict[str, Any]:
        """The run as JSON values; null is not known."""
        return {
            "run": self.folder.name, "folder": str(self.folder), "began": self.began.isoformat(),
            "world": self.world or None, "seed": self.seed, "prompts": None if self.trouble else self.prompts,
            "outcomes": None if self.outcomes is None else {str(k): n for k, n in self.outcomes.items()},
            "faults_witnessed": self.witnessed, "ended": self.ended or None, "trouble": self.trouble or None,
        }  # fmt: skip


def render(logs: Path = places.LOGS) -> str:
    """The list of all runs in a folder, newest first, as text.

    Raises:
        LookupError: there is none.
    """
    return "\n".join(line.told() for line in listed(logs)) + "\n"


def listed(logs: Path = places.LOGS) -> Iterator[RunLine]:
    """The lines of all runs in a folder, newest first.

    Raises:
        LookupError: there is none.
    """
    there = runs.newest_first(logs) or (
        [logs] if any(logs.glob("*.log")) else []
    )  # the first lab has no folder per run
    if not there and logs.exists() and not logs.is_dir():
        raise LookupError(f"{logs}: this is a file; name the folder that the runs are in")
    if not there:
        raise LookupError(places.none_yet(logs))
    yield from (of(folder) for folder in there)


def of(folder: Path) -> RunLine:
    """The line of one run, also of one that cannot be read."""
    began = runs.began(folder) or datetime.fromtimestamp(folder.stat().st_mtime, UTC)
    return guarded(lambda: _read(folder, began), lambda why: RunLine(folder, began, trouble=f"cannot be read: {why}"))


def _read(folder: Path, began: datetime) -> RunLine:
    files = log_files(folder)
    if not files:
        return RunLine(folder, began, trouble="it has left no logs")
    running = is_written(folder)
    large = sum(path.stat().st_size for path in files) > COUNTED_MAX
    try:
        history = History(_records(files, BEGINNING if large else None), running=running)
        if history.first(RunStarted) is None:
            if large:
                return RunLine(folder, began, trouble="cannot be read: it is large, and does not tell how it began")
            history = places.read(str(folder))
    except LookupError as error:
        return RunLine(folder, began, trouble=f"cannot be read: {error.args[0]}")
    except OSError as error:
        return RunLine(folder, began, trouble=places.unreadable(folder, error))
    run, end = history.first(RunStarted), history.first(RunFinished)
    return RunLine(
        folder,
        began,
        run.world if run else "",
        run.seed if run else None,
        run.prompts if run else len(history.trials),
        None if large else Counter(verdict.outcome for verdict in verdicts(history).values()),
        sum(1 for _ in history.of(FaultWitnessed)) if history.has(FaultWitnessed) and not large else None,
        end.reason if end else "still running" if running else "" if large else "not finished",
    )


def _records(files: Iterable[Path], beginning: int | None) -> Iterator[Record]:
    """The events of these kinds, `beginning` bounds the lines that are read of each file."""
    for path in files:
        for text in islice(lines_of(path), beginning):
            if _SAYS.search(text) and (record := parse_line(text)) is not None:
                yield record
