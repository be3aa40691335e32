"""The log of one trial in memory. A line costs an append, and becomes an event when it is read."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Any, NamedTuple, Protocol, TypeVar

from chaoslab.base.clock import Clock, format_iso, system
from chaoslab.base.identity import Requests, TrialId
from chaoslab.core.events import Event, TurnStarted
from chaoslab.record.history import History
from chaoslab.record.lines import Record
from chaoslab.record.log import BufferedEvent, mask_events

WRITER = "info"
_new = object.__new__
_tuple = tuple.__new__  # a NamedTuple's own takes three times as long
E = TypeVar("E", bound=Event)


class DeferredEvent(Protocol):
    """An object that becomes events when the log is read."""

    def make_phase_event(self, phase: str, requests: Requests, t: float, /) -> Event:
        """The event of the part noted under this name, at the moment `t`. It is called once, in the order of noting."""


class _PackedEvents(NamedTuple):
    """The events of one trial for another process: their times, their texts in lines, and by their places those that
    move. One text is pickled in a fraction of the time of its parts."""

    times: Sequence[float]
    texts: str
    moving: dict[int, Event]

    @classmethod
    def build(cls, events_: Sequence[BufferedEvent]) -> _PackedEvents:
        if not events_:
            return cls((), "", {})
        _, times, _, event_texts, _ = zip(*events_, strict=True)
        moving = {n: text for n, text in enumerate(event_texts) if isinstance(text, Event)}
        texts = [*event_texts]
        for n in moving:
            texts[n] = ""
        # Each is a line of JSON, which has no line feed in it.
        return cls(times, "\n".join(texts), moving)

    def unpack_events(self, trial: str) -> list[BufferedEvent]:
        texts: list[str | Event] = [*self.texts.split("\n")] if self.times else []
        for n, event in self.moving.items():
            texts[n] = event
        rows = zip(self.times, texts, strict=True)
        return [_tuple(BufferedEvent, (WRITER, t, trial, text, True)) for t, text in rows]


class TrialLog:
    """The log of a trial, made when the trial begins, in its own time. `began` is the wall clock's time then."""

    def __init__(self, trial: TrialId, *, began: datetime, clock: Clock = system) -> None:
        self.trial, self.key, self.began = trial, trial.key, began
        self.requests = Requests(trial)
        self.calls = 0
        self.served: set[str] = set()
        """The tools of MCP servers whose effects were noted where they are served."""
        self.secrets: set[str] = set()
        """The credentials that its requests carry, which no line may show."""
        self._now = clock.monotonic
        self.origin = self._now()
        self._lines: list[tuple[float, Any, str]] = []
        self.lines: list[str] | None = None
        """The line of the user's source at which each call was made, in the order of noting; None: nobody asks."""
        self.over = False
        """True when the time to settle after the answer is over."""
        self._mark: tuple[int, float] | None = None
        self._history: History | None = None
        self._timed: list[tuple[float, Event]] | None = None
        """The events with their times, where another process has read the lines."""
        self._sent = b""  # both, pickled by another process, until they are read
        self.plain = False
        """True once `buffered_events` was read, if no event holds a secret, so that a log has each as it is."""
        self.spelt: list[BufferedEvent] | None = None
        """Its events as a log takes them, to be sent to another process in their place; None if that would lack
        something."""

    def hide_secrets(self, secrets: Iterable[str]) -> None:
        """Takes credentials of a request or a reply."""
        self.secrets.update(secrets)

    def note_event(self, noted: Event) -> None:
        self._lines.append((self._now(), noted, ""))

    def note_call_phase(self, noted: DeferredEvent, phase: str) -> float:
        """Notes a part of it, and returns the moment."""
        now_s = self._now()
        self._lines.append((now_s, noted, phase))
        return now_s

    def mark_position(self) -> None:
        """Marks this place and moment of the log for `insert_events_at_mark`."""
        self._mark = len(self._lines), self._now()

    @property
    def has_mark(self) -> bool:
        """True once there is a mark: the agent has ended by itself."""
        return self._mark is not None

    @property
    def has_notes_after_mark(self) -> bool:
        """True if something was noted after the mark."""
        return self._mark is not None and self._mark[0] < len(self._lines)

    def insert_events_at_mark(self, noted: Iterable[Event]) -> None:
        """Notes events at the marked place and moment, before all that came later; at the end if there is no mark."""
        position, moment = self._mark or (len(self._lines), self._now())
        self._lines[position:position] = [(moment, event, "") for event in noted]

    def list_open_functions(self) -> list[str]:
        """The functions whose calls have begun and are not over."""
        return [noted.name for noted in self.list_open_calls()]

    def list_open_calls(self) -> list[Any]:
        """The calls of functions that have begun and are not over."""
        begun = {id(noted): noted for _, noted, part in self._lines if part == "begin"}
        for _, noted, part in self._lines:
            if part == "end":
                begun.pop(id(noted), None)
        return [*begun.values()]

    def find_noted_events(self, kind: type[E]) -> Iterator[E]:
        """All events of a kind so far, except those of a `DeferredEvent`."""
        return (noted for _, noted, phase in self._lines if not phase and isinstance(noted, kind))

    def list_called_functions(self) -> frozenset[str]:
        """The names of the functions that were called. To be used before the history is read."""
        return frozenset(noted.name for _, noted, phase in self._lines if phase == "begin")

    @property
    def history(self) -> History:
        """All events. To be read when the trial is over."""
        if self._sent:
            self._lines, self._timed = pickle.loads(self._sent)
            self._sent = b""
        if self._history is None and self.spelt is not None:
            lines = (
                event.make_record(n, run=self.trial.run, began=self.began) for n, event in enumerate(self.spelt, 1)
            )
            self._history = History(filter(None, lines), ordered=True)
        if self._history is None:
            # One writer's, numbered as they come: those of one moment are in order.
            self._history = History(sorted(self._iterate_records(), key=attrgetter("t")), ordered=True)
            self._lines.clear()
        return self._history

    def append_to_history(self, event: Event) -> None:
        """Adds an event to the history, at its end."""
        records = [*self.history.records]
        last = records[-1]
        self._history = History([*records, replace(last, seq=last.seq + 1, event=event)], ordered=True)

    def iterate_events(self) -> Iterator[Event]:
        """All events, for a reader who needs no records of them. To be read once, and instead of the history."""
        if self._sent:  # another process noted them
            return (record.event for record in self.history.records)
        return (event for _, event in self._iterate_timed_events())

    def _iterate_records(self) -> Iterable[Record]:
        run, trial, at, ts = self.trial.run, self.key, -1.0, ""
        for number, (t, event) in enumerate(self._iterate_timed_events(), 1):
            if t != at:  # many events have one moment in virtual time
                at, ts = t, format_iso(self.began + timedelta(seconds=t))
            record: Record = _new(Record)  # a frozen dataclass's own takes three times as long
            record.__dict__.update(ts=ts, t=t, run=run, trial=trial, writer=WRITER, seq=number, event=event)
            yield record

    def _iterate_timed_events(self) -> Iterator[tuple[float, Event]]:
        """Each event with its time; may be called once."""
        if self._timed is not None:
            yield from self._timed
            return
        self.requests.turn = 1
        for moment, noted, phase in self._lines:
            t = round(moment - self.origin, 6)
            if isinstance(noted, TurnStarted):
                self.requests.turn = noted.turn
            yield t, noted.make_phase_event(phase, self.requests, t) if phase else noted

    @property
    def buffered_events(self) -> list[BufferedEvent]:
        """The events of `history`, as a run's folder takes them, without secrets."""
        if self.spelt is not None:
            return self.spelt
        events_ = [BufferedEvent.build(r.writer, r.t, r.trial, r.event) for r in self.history.records]
        self.plain = not self.secrets and all(event.plain for event in events_)
        return events_ if self.plain else mask_events(events_, self.secrets)

    def __getstate__(self) -> dict[str, Any]:
        """The state for another process, which cannot note more. Most logs are never read there, so they stay
        pickled."""
        sent = self._sent
        if not sent and self.spelt is None:
            timed = None if self._history is None else [(record.t, record.event) for record in self._history.records]
            sent = pickle.dumps((self._lines, timed))
        return {
            "trial": self.trial, "key": self.key, "began": self.began, "calls": self.calls, "secrets": self.secrets,
            "origin": self.origin, "_sent": sent, "plain": self.plain, "lines": self.lines,
            "spelt": None if self.spelt is None else _PackedEvents.build(self.spelt),
        }  # fmt: skip

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.requests, self._history = Requests(self.trial), None
        if (spelt := state["spelt"]) is not None:
            self.spelt = spelt.unpack_events(self.key)
