"""The progress of a long run: outcomes, faults met, rate and remaining time. In a terminal it is a live view with a
bar, elsewhere a line now and then."""

from __future__ import annotations

import sys
from collections import Counter
from shutil import get_terminal_size

from chaoslab.analysis.verdict.table import Outcome
from chaoslab.base.clock import Clock, system
from chaoslab.base.commandline import Steering
from chaoslab.base.durations import duration, span
from chaoslab.base.terminal import clean
from chaoslab.reports.trials import counted

LIVE_S, PLAIN_S = 0.1, 5.0
BAR = 40
"""The columns of the bar."""


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
        self._live = sys.stderr.isatty()

    def count(self, seconds: float, *, outcome: Outcome, faults: int) -> None:
        self._done += 1
        self._outcomes[outcome] += 1
        self._faults += faults
        self._virtual_s += seconds
        now_s = self._clock.monotonic()
        if self._first_s is None:
            self._first_s = now_s
        if not self._quiet and now_s - self._said_s >= (LIVE_S if self._live else PLAIN_S):
            self._said_s = now_s
            self._show(*(self._view(now_s) if self._live else [self._line(now_s)]))

    def say(self, line: str) -> None:
        """Prints a message above the progress."""
        self._show()
        print(line, file=sys.stderr, flush=True)

    def _line(self, now_s: float) -> str:
        rate = self._rate(now_s)
        left_s = (self._trials - self._done) / rate if rate else 0.0
        pace = f", {rate:.0f} trials/s, {span(left_s)} to go" if rate else ""
        return f"trial {self._done}/{self._trials}: {counted(self._outcomes)}; {self._faults} faults met{pace}"

    def _rate(self, now_s: float) -> float:
        """The trials per second since the first was done: the preparation does not count."""
        since_s = now_s - (self._first_s or now_s)
        return (self._done - 1) / since_s if since_s > 0 and self._done > 1 else 0.0

    def _view(self, now_s: float) -> list[str]:
        """The live view: the bar with the pace, the outcomes, and the faults with the trial that is due."""
        rate, share = self._rate(now_s), self._done / max(1, self._trials)
        bar = f"{'━' * round(BAR * share):╌<{BAR}}"
        pace = f" · {rate:.0f} trials/s · {span((self._trials - self._done) / rate)} to go" if rate else ""
        met = f"{self._faults} faults met" + (f", {self._faults * rate / self._done:.0f} a second" if rate else "")
        due = f" · now trial {self._done + 1}" if self._done < self._trials else ""
        return [f"{bar} {self._done} of {self._trials}{pace}", counted(self._outcomes), f"{met}{due}"]

    def _show(self, *lines: str) -> None:
        """Puts these lines in the place of the view before, in a terminal."""
        if self._live:
            width = get_terminal_size().columns - 1
            up = f"\x1b[{self._drawn - 1}A" if self._drawn > 1 else ""
            text = "\n".join(clean(line)[:width] for line in lines)
            print(f"\r{up}\x1b[J{text}", end="", file=Steering(sys.stderr), flush=True)
            self._drawn = len(lines)
        else:
            print(*lines, sep="\n", end="\n" if lines else "", file=sys.stderr, flush=True)

    def __enter__(self) -> WorkProgress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._show()
        if self._quiet or not self._summed:
            return
        took_s = self._clock.monotonic() - self._began_s
        hung = f" ({self._outcomes[Outcome.HUNG]} hung)" if self._outcomes[Outcome.HUNG] else ""
        rate = self._virtual_s / took_s if took_s else 0.0
        print(
            f"{self._done} of {self._trials} trials{hung}, {span(self._virtual_s)} of virtual time in "
            f"{duration(took_s, 1)}{f' ({rate:.0f} × real time)' if rate >= 1 else ''}"
        )
