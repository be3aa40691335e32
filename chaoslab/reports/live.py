"""A live view of a run: a line for each prompt that has ended, and one line on the present state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from chaoslab.base.jsonable import line
from chaoslab.core.events import (
    CallStarted,
    FaultArmed,
    FaultHealed,
    FaultWitnessed,
    PromptFinished,
    PromptStarted,
    RunStarted,
)
from chaoslab.record.lines import Record

PROMPT_MAX = 80
BAR = 20


@dataclass
class _Prompt:
    """A prompt that was started. `armed`: the attempts whose lanes are still up, so that their faults are not known
    yet."""

    number: int
    text: str
    armed: set[tuple[str, str, int, int]] = field(default_factory=set)
    met: Counter[str] = field(default_factory=Counter)
    finished: PromptFinished | None = None


class Watched:
    """The state of a run, from its events as they come."""

    def __init__(self) -> None:
        self._prompts: dict[str | None, _Prompt] = {}
        self._open: dict[str | None, _Prompt] = {}
        self._of = self._done = self._faults = 0
        self._now = _Prompt(0, "")
        self._call = ""

    def take(self, records: Iterable[Record]) -> None:
        """Adds events, in their order."""
        for record in records:
            self._take(record)

    def _take(self, record: Record) -> None:
        event, prompt = record.event, self._prompts.get(record.trial)
        match event:
            case RunStarted():
                self._of = event.prompts
            case PromptStarted():
                self._now = _Prompt(len(self._prompts) + 1, event.prompt)
                self._prompts[record.trial] = self._open[record.trial] = self._now
                self._call = ""
            case CallStarted():
                self._call = f"{event.target}.{event.tool}"
            case FaultArmed() if prompt is not None:
                prompt.armed.add((event.target, event.request_id, event.request, event.attempt))
            case FaultHealed() if prompt is not None:
                prompt.armed.discard((event.target, event.request_id, event.request, event.attempt))
            case FaultWitnessed():
                self._faults += 1
                if prompt is not None:
                    prompt.met[event.fault] += 1
            case PromptFinished() if prompt is not None:
                prompt.finished = event
                self._done += 1

    def ended(self, *, all_of_them: bool = False) -> Iterator[str]:
        """A line for each prompt that has ended since the last call. A prompt with open lanes waits for them, unless
        `all_of_them`."""
        for trial, prompt in list(self._open.items()):
            if prompt.finished is not None and (all_of_them or not prompt.armed):
                del self._open[trial]
                yield self._line(trial, prompt, prompt.finished)

    def _line(self, trial: str | None, prompt: _Prompt, finished: PromptFinished) -> str:
        what = "answered" if finished.error_type == "none" else f"no answer: {finished.error_type} error"
        met = ", ".join(f"{count} × {fault}" if count > 1 else fault for fault, count in prompt.met.items())
        whose = f"{trial}, met {met}" if met else str(trial)
        place = f"{prompt.number:>3}/{self._of}"
        return f"prompt {place} {what} {finished.duration_s:6.2f} s  {whose}: {line(prompt.text, PROMPT_MAX)}"

    def now(self, width: int) -> str:
        """The progress in one line: prompt i of n, the call in flight, the faults met so far."""
        bar = "━" * round(BAR * self._done / self._of) if self._of else ""
        faults = f"{self._faults} fault{'' if self._faults == 1 else 's'}"
        place = f"prompt {self._now.number} of {self._of}"
        return line(f"{bar:<{BAR}} {place} · {self._call or 'thinking'} · {faults} · {self._now.text}", width)
