"""The log of one trial that is kept in memory: a line costs an append, and becomes an event when somebody reads it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Any

from chaoslab.clock import Clock, iso, system
from chaoslab.events import Event
from chaoslab.history import History, Record
from chaoslab.identity import Requests, Trial
from chaoslab.log import Kept, told

WRITER = "info"

Noted = Event | Callable[[Requests, float], Iterable[Event]]
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
        self._lines: list[tuple[float, Noted]] = []
        self._history: History | None = None

    def note(self, noted: Noted) -> None:
        self._lines.append((self._now(), noted))

    @property
    def history(self) -> History:
        """All that was noted. To be read when the trial is over."""
        if self._history is None:
            self._history = History(self._records())
            self._lines.clear()
        return self._history

    def _records(self) -> Iterable[Record]:
        run, trial, number = self.trial.run, self.trial.key, 0
        for moment, noted in self._lines:
            t = round(moment - self.origin, 6)
            ts = iso(self.began + timedelta(seconds=t))
            for event in (noted,) if isinstance(noted, Event) else noted(self.requests, t):
                number += 1
                yield Record(ts, t, run, trial, WRITER, number, event)

    @property
    def kept(self) -> list[Kept]:
        """The same, as a run's folder takes it."""
        return [Kept(r.writer, r.t, r.trial, r.event if r.event.moves else told(r.event)) for r in self.history.records]

    def __getstate__(self) -> dict[str, Any]:
        """To another process goes what happened, and nothing that could go on."""
        return {"trial": self.trial, "began": self.began, "calls": self.calls, "_history": self.history}
