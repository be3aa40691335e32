"""A live view of a run: a line for each trial that has ended, and one line on the present state."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from chaoslab.base.durations import duration, span
from chaoslab.base.jsonable import line
from chaoslab.core import events
from chaoslab.record.lines import Record

TEXT_MAX = 80
BAR = 20


@dataclass
class _Trial:
    """A trial that was started. `armed`: the attempts whose lanes are still up, so that their faults are not known
    yet."""

    number: int
    text: str
    armed: set[tuple[str, str, int, int]] = field(default_factory=set)
    met: Counter[str] = field(default_factory=Counter)
    finished: events.PromptFinished | None = None


class LiveRun:
    """The state of a run, from its events as they come."""

    def __init__(self) -> None:
        self._trials: dict[str | None, _Trial] = {}
        self._open: dict[str | None, _Trial] = {}
        self._of = self._done = self._faults = 0
        self._now = _Trial(0, "")
        self._call = ""
        self._t = 0.0

    def take(self, records: Iterable[Record]) -> None:
        """Adds events, in their order."""
        for record in records:
            self._take(record)

    def _take(self, record: Record) -> None:
        event, trial = record.event, self._trials.get(record.trial)
        self._t = record.t
        match event:
            case events.RunStarted():
                self._of = event.prompts
            case events.PromptStarted():
                self._now = _Trial(len(self._trials) + 1, event.prompt)
                self._trials[record.trial] = self._open[record.trial] = self._now
                self._call = ""
            case events.CallStarted():
                self._call = f"{event.target}.{event.tool}"
            case events.FaultArmed() if trial is not None:
                trial.armed.add((event.target, event.request_id, event.request, event.attempt))
            case events.FaultHealed() if trial is not None:
                trial.armed.discard((event.target, event.request_id, event.request, event.attempt))
            case events.FaultWitnessed():
                self._faults += 1
                if trial is not None:
                    trial.met[event.fault] += 1
            case events.PromptFinished() if trial is not None:
                trial.finished = event
                self._done += 1

    def ended(self, *, all_of_them: bool = False) -> Iterator[str]:
        """A line for each trial that has ended since the last call. A trial with open lanes waits for them, unless
        `all_of_them`."""
        for key, trial in list(self._open.items()):
            if trial.finished is not None and (all_of_them or not trial.armed):
                del self._open[key]
                yield self._line(key, trial, trial.finished)

    def _line(self, key: str | None, trial: _Trial, finished: events.PromptFinished) -> str:
        what = "answered" if finished.error_type == "none" else f"no answer: {finished.error_type} error"
        met = ", ".join(f"{count} × {fault}" if count > 1 else fault for fault, count in trial.met.items())
        whose = f"{key}, met {met}" if met else str(key)
        place = f"{trial.number:>3}/{self._of}"
        return f"trial {place} {what} {duration(finished.duration_s, 2):>8}  {whose}: {line(trial.text, TEXT_MAX)}"

    def now(self, width: int) -> str:
        """The progress in one line: trial i of n, the time to go, the call in flight, the faults met so far and in a
        minute."""
        bar = "━" * round(BAR * self._done / self._of) if self._of else ""
        faults = f"{self._faults} fault{'' if self._faults == 1 else 's'}"
        place = f"trial {self._now.number} of {self._of}"
        if self._done and self._t > 0:
            place += f" · {span(self._t / self._done * max(0, self._of - self._done))} to go"
            faults += f", {self._faults / self._t * 60:.0f} a minute"
        return line(f"{bar:<{BAR}} {place} · {self._call or 'thinking'} · {faults} · {self._now.text}", width)
