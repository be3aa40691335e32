"""Progress of a run: a live line in a terminal, now and then a line elsewhere, and the outcomes at the end."""

import io
import sys
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from chaoslab.analysis.verdict.table import Outcome
from chaoslab.base.durations import format_duration, format_long_duration
from chaoslab.reports.progress import LIVE_S, PLAIN_S, WorkProgress


@dataclass
class Clock:
    """Moved by hand."""

    now_s: float = 50.0

    def monotonic(self) -> float:
        return self.now_s

    def utc(self) -> datetime:
        return datetime.fromtimestamp(self.now_s, UTC)

    def sleep(self, delay_s: float) -> None:
        self.now_s += delay_s

    async def sleep_async(self, delay_s: float) -> None:
        self.now_s += delay_s


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_elsewhere_a_line_is_said_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    with WorkProgress(100, clock=clock) as progress:
        clock.sleep(2.0)  # getting ready is no part of the rate
        for number in range(50):
            outcome = Outcome.HUNG if number == 20 else Outcome.CORRECT if number % 10 else Outcome.WRONG
            progress.count_trial(30.0, outcome=outcome, faults=2)
            clock.sleep(PLAIN_S / 25)
    words = capsys.readouterr()
    assert words.err.splitlines() == [
        "trial 16/100: 14 correct, 2 wrong; 32 faults met, 5 trials/s, 17 s to go",
        "trial 41/100: 36 correct, 4 wrong, 1 hung; 82 faults met, 5 trials/s, 12 s to go",
    ]
    assert words.out == "50 of 100 trials (1 hung), 25 min 0 s of virtual time in 12.0 s (125 × real time)\n"


def test_a_terminal_has_a_view_that_changes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock, terminal = Clock(), Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("COLUMNS", "80")
    with WorkProgress(4, clock=clock) as progress:
        for outcome in (Outcome.CORRECT, Outcome.HARM, Outcome.HARM):
            clock.sleep(LIVE_S)
            progress.count_trial(1.0, outcome=outcome, faults=2)
        progress.print_message("a worker died")
    often, up = "20 a second · now", "\r\x1b[2A"
    begun, half, most = "━" * 10 + "╌" * 30, "━" * 20 + "╌" * 20, "━" * 30 + "╌" * 10
    assert terminal.getvalue().split("\x1b[J") == [
        "\r",
        f"{begun} 1 of 4\n1 correct\n2 faults met · now trial 2{up}",
        f"{half} 2 of 4 · 10 trials/s · 0.2 s to go\n1 correct, 1 harm\n4 faults met, {often} trial 3{up}",
        f"{most} 3 of 4 · 10 trials/s · 0.1 s to go\n1 correct, 2 harm\n6 faults met, {often} trial 4{up}",
        "a worker died\n\r",
        "",
    ]
    assert capsys.readouterr().out.startswith("3 of 4 trials, 3 s of virtual time in ")


def test_a_run_without_a_trial_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    with WorkProgress(7, clock=Clock()):
        pass
    assert capsys.readouterr().out == "0 of 7 trials, 0 s of virtual time in 0 s\n"


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.0, "0 s"),
        (59.4, "59 s"),
        (59.6, "1 min 0 s"),
        (200, "3 min 20 s"),
        (7500, "2 h 5 min"),
        (400_000, "111 h 6 min"),
    ],
)
def test_a_long_time_in_words(seconds: float, said: str) -> None:
    assert format_long_duration(seconds) == said


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.0002, "0.2 ms"), (0.0, "0 s"), (0.00994, "9.9 ms"), (0.01, "0.010 s"), (2.5, "2.500 s")]
)
def test_a_short_time_in_words(seconds: float, said: str) -> None:
    assert format_duration(seconds) == said
