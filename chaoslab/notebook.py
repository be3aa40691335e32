"""The log of one trial that is kept in memory: a line costs an append, and becomes an event when somebody reads it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable
from dataclasses import asdict
from datetime import datetime, timedelta
from pathlib import Path

from chaoslab.clock import Clock, iso, system
from chaoslab.events import Event
from chaoslab.history import History, Record
from chaoslab.identity import Requests, Trial

WRITER = "info"

Told = Event | Callable[[Requests, float], Iterable[Event]]
"""What is noted: an event, or what tells its events later, given the trial's requests and the moment."""


class Notebook:
    """Made when its trial begins, in the trial's own time; `began` is what the wall clock said then."""

    def __init__(self, trial: Trial, *, began: datetime, clock: Clock = system) -> None:
        self.trial, self.began = trial, began
        self.requests = Requests(trial)
        self.lock = threading.Lock()
        """For whoever asks `requests` while the trial goes on: its threads may call at once."""
        self.calls = 0
        self._now = clock.monotonic
        self.origin = self._now()
        self._lines: list[tuple[float, Told]] = []
        self._history: History | None = None

    def note(self, told: Told) -> None:
        self._lines.append((self._now(), told))

    def note_at(self, moment: float, event: Event) -> None:
        """For what is known only when the trial's own clock can no longer be asked. `moment`: by that clock."""
        self._lines.append((moment, event))

    @property
    def history(self) -> History:
        """All that was noted. To be read when the trial is over."""
        if self._history is None:
            self._history = History(self._records())
            self._lines.clear()
        return self._history

    def _records(self) -> Iterable[Record]:
        run, trial, number = self.trial.run, self.trial.key, 0
        for moment, told in self._lines:
            t = round(moment - self.origin, 6)
            ts = iso(self.began + timedelta(seconds=t))
            for event in (told,) if isinstance(told, Event) else told(self.requests, t):
                number += 1
                yield Record(ts, t, run, trial, WRITER, number, event)


class Folder:
    """A run's folder as the rest of the lab reads it, written trial by trial; what an equal run left there is replaced."""

    def __init__(self, folder: Path, *, now: datetime) -> None:
        """Raises OSError: the folder cannot be made."""
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("*.log"):
            old.unlink()
        self._run, self._now, self._number, self._t = folder.name, now, 0, 0.0
        self._path = folder / f"{WRITER}.log"
        told = {"name": self._run, "folder": folder.name, "origin": 0.0, "now": iso(now), "started": iso(now)}
        (folder / "run.json").write_text(json.dumps(told, indent=2) + "\n")

    def add(self, *events: Event) -> None:
        """Something of the run itself, at the moment at which the last trial ended."""
        self._write([Record("", 0.0, self._run, None, WRITER, 0, event) for event in events])

    def add_trial(self, history: History) -> None:
        """A trial, whose time goes on where the last one's ended."""
        self._write(history.records)
        self._t += max((record.t for record in history.records), default=0.0)

    def _write(self, records: Iterable[Record]) -> None:
        lines = []
        for record in records:
            self._number += 1
            t = round(self._t + record.t, 6)
            envelope = {
                "ts": iso(self._now + timedelta(seconds=t)), "t": t, "run": self._run, "trial": record.trial,
                "writer": WRITER, "seq": self._number, "kind": record.event.kind,
            }  # fmt: skip
            lines.append(json.dumps(envelope | asdict(record.event), ensure_ascii=False) + "\n")  # type: ignore[call-overload]
        with self._path.open("a", encoding="utf-8", errors="surrogatepass") as file:
            file.writelines(lines)
