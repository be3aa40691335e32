"""The progress of a long run: outcomes, faults met, rate and remaining time. In a terminal it is a live view with a
bar, elsewhere a line now and then. `LiveRun` is that of a run by its log alone."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from shutil import get_terminal_size

from chaoslab.analysis.verdict.table import Outcome
from chaoslab.base.clock import Clock, system
from chaoslab.base.commandline import Steering
from chaoslab.base.durations import format_duration, format_long_duration
from chaoslab.base.jsonable import to_one_line
from chaoslab.base.terminal import clean_text
from chaoslab.core import events
from chaoslab.record.lines import Record
from chaoslab.reports.trials import format_outcome_counts

LIVE_S, PLAIN_S = 0.1, 5.0
BAR, RUN_BAR = 40, 20
"""The columns of the bar, and of that of a run of the lab."""
TEXT_MAX = 80


class WorkProgress:
    """A context around the work; call `count` after each trial. `summed`: it ends with a line on the whole."""

    def __init__(self, trials: int, *, clock: Clock = system, quiet: bool = False, summed: bool = True) -> None:
        self._trials, self._clock, self._summed = trials, clock, summed
        self._drawn = 0
        self._done = self._faults = 0
        self._quiet = quiet
        self._outcomes = Counter[Outcome]()
        self._virtual_s = 0.0
        self._began_s = self._said_s = clock.monotonic()
        self._first_s: float | None = None
        # A file or a pipe takes no cursor.
        self._live = sys.stderr.isatty()

    def count_trial(self, seconds: float, *, outcome: Outcome, faults: int) -> None:
        self._done += 1
        self._outcomes[outcome] += 1
        self._faults += faults
        self._virtual_s += seconds
        now_s = self._clock.monotonic()
        if self._first_s is None:
            # What is before the first trial, such as imports, would make the pace too slow.
            self._first_s = now_s
        if not self._quiet and now_s - self._said_s >= (LIVE_S if self._live else PLAIN_S):
            self._said_s = now_s
            self._redraw(*(self._render_live_view(now_s) if self._live else [self._render_line(now_s)]))

    def print_message(self, line: str) -> None:
        """Prints a message above the progress."""
        self._redraw()
        print(line, file=sys.stderr, flush=True)

    def _render_line(self, now_s: float) -> str:
        rate = self._trials_per_second(now_s)
        left_s = (self._trials - self._done) / rate if rate else 0.0
        pace = f", {rate:.0f} trials/s, {format_long_duration(left_s)} to go" if rate else ""
        return (
            f"trial {self._done}/{self._trials}: {format_outcome_counts(self._outcomes)}; {self._faults} faults "
            f"met{pace}"
        )

    def _trials_per_second(self, now_s: float) -> float:
        """The trials per second since the first was done: the preparation does not count."""
        since_s = now_s - (self._first_s or now_s)
        return (self._done - 1) / since_s if since_s > 0 and self._done > 1 else 0.0

    def _render_live_view(self, now_s: float) -> list[str]:
        """The live view: the bar with the pace, the outcomes, and the faults with the trial that is due."""
        rate, share = self._trials_per_second(now_s), self._done / max(1, self._trials)
        bar = f"{'━' * round(BAR * share):╌<{BAR}}"
        pace = (
            f" · {rate:.0f} trials/s · {format_long_duration((self._trials - self._done) / rate)} to go" if rate else ""
        )
        faults_text = f"{self._faults} faults met" + (
            f", {self._faults * rate / self._done:.0f} a second" if rate else ""
        )
        due_text = f" · now trial {self._done + 1}" if self._done < self._trials else ""
        return [
            f"{bar} {self._done} of {self._trials}{pace}",
            format_outcome_counts(self._outcomes),
            f"{faults_text}{due_text}",
        ]

    def _redraw(self, *lines: str) -> None:
        """Puts these lines in the place of the view before, in a terminal."""
        if self._live:
            # One column less: a full line would wrap, and be two.
            width = get_terminal_size().columns - 1
            up = f"\x1b[{self._drawn - 1}A" if self._drawn > 1 else ""
            # A prompt may hold sequences that move the cursor.
            text = "\n".join(clean_text(line)[:width] for line in lines)
            print(f"\r{up}\x1b[J{text}", end="", file=Steering(sys.stderr), flush=True)
            self._drawn = len(lines)
        else:
            print(*lines, sep="\n", end="\n" if lines else "", file=sys.stderr, flush=True)

    def __enter__(self) -> WorkProgress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            # The view is taken away before the last line.
            self._redraw()
        if self._quiet or not self._summed:
            return
        took_s = self._clock.monotonic() - self._began_s
        hung = f" ({self._outcomes[Outcome.HUNG]} hung)" if self._outcomes[Outcome.HUNG] else ""
        rate = self._virtual_s / took_s if took_s else 0.0
        print(
            f"{self._done} of {self._trials} trials{hung}, {format_long_duration(self._virtual_s)} of virtual time in "
            f"{format_duration(took_s, 1)}{f' ({rate:.0f} × real time)' if rate >= 1 else ''}"
        )


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
    """The state of a run, from its events as they come: a line for each trial that has ended, and one line on now."""

    def __init__(self) -> None:
        self._trials: dict[str | None, _Trial] = {}
        self._open: dict[str | None, _Trial] = {}
        self._of = self._done = self._faults = 0
        self._now = _Trial(0, "")
        self._call = ""
        self._t = 0.0

    def add_records(self, records: Iterable[Record]) -> None:
        """Adds events, in their order."""
        for record in records:
            self._add_record(record)

    def _add_record(self, record: Record) -> None:
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

    def describe_ended_trials(self, *, all_of_them: bool = False) -> Iterator[str]:
        """A line for each trial that has ended since the last call. A trial with open lanes waits for them, unless
        `all_of_them`."""
        # A copy, since a trial that is told is taken out.
        for key, trial in list(self._open.items()):
            if trial.finished is not None and (all_of_them or not trial.armed):
                del self._open[key]
                yield self._describe_trial(key, trial, trial.finished)

    def _describe_trial(self, key: str | None, trial: _Trial, finished: events.PromptFinished) -> str:
        ending = "answered" if finished.error_type == "none" else f"no answer: {finished.error_type} error"
        faults_text = ", ".join(f"{count} × {fault}" if count > 1 else fault for fault, count in trial.met.items())
        trial_text = f"{key}, met {faults_text}" if faults_text else str(key)
        position = f"{trial.number:>3}/{self._of}"
        return (
            f"trial {position} {ending} {format_duration(finished.duration_s, 2):>8}  {trial_text}: "
            f"{to_one_line(trial.text, TEXT_MAX)}"
        )

    def render_progress_line(self, width: int) -> str:
        """The progress in one line: trial i of n, the time to go, the call in flight, the faults met so far and in a
        minute."""
        bar = "━" * round(RUN_BAR * self._done / self._of) if self._of else ""
        faults = f"{self._faults} fault{'' if self._faults == 1 else 's'}"
        position = f"trial {self._now.number} of {self._of}"
        if self._done and self._t > 0:
            position += f" · {format_long_duration(self._t / self._done * max(0, self._of - self._done))} to go"
            faults += f", {self._faults / self._t * 60:.0f} a minute"
        return to_one_line(
            f"{bar:<{RUN_BAR}} {position} · {self._call or 'thinking'} · {faults} · {self._now.text}", width
        )
