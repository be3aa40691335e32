"""The progress display of the agent, read from the run's logs: a live line in a terminal, one line a trial
elsewhere."""

import asyncio
import os
import sys
from pathlib import Path

from chaoslab.base.commandline import Steering
from chaoslab.base.terminal import clean_text
from chaoslab.record.follow import Follower
from chaoslab.reports.progress import LiveRun


class PlainDisplay:
    """One line for each trial that has ended."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def show_progress(self, interval_s: float) -> None:
        """Prints until cancelled, and then the remaining lines."""
        watched = LiveRun()
        with Follower(self._folder) as follower:
            try:
                while True:
                    watched.add_records(follower.read_new_records())
                    self._print_ended_trials(watched)
                    await asyncio.sleep(interval_s)
            finally:
                # The lines that came since the last look.
                watched.add_records(follower.read_new_records())
                self._print_ended_trials(watched, all_of_them=True)

    def _print_ended_trials(self, watched: LiveRun, *, all_of_them: bool = False) -> None:
        for line in watched.describe_ended_trials(all_of_them=all_of_them):
            try:
                print(line, flush=True)
            except OSError:  # `make lab | head`: the reader has closed, or its disk is full; the run goes on
                sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - for the rest of the process


class LiveDisplay:
    """A line that updates itself: trial i of n, the call in flight, faults so far."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def show_progress(self, interval_s: float) -> None:
        """Updates the line until cancelled."""
        from rich.console import Console
        from rich.live import Live as Screen
        from rich.text import Text

        watched = LiveRun()
        console = Console(file=Steering(sys.stdout))  # type: ignore[arg-type]  # it has all that a stream has
        with (
            Follower(self._folder) as follower,
            Screen(Text(""), console=console, auto_refresh=False, transient=True) as screen,
        ):
            while True:
                watched.add_records(follower.read_new_records())
                screen.update(
                    Text(clean_text(watched.render_progress_line(max(20, screen.console.width - 1)))), refresh=True
                )
                await asyncio.sleep(interval_s)


def choose_display(folder: Path) -> PlainDisplay | LiveDisplay:
    """Live in a terminal, plain otherwise."""
    return (LiveDisplay if sys.stdout.isatty() else PlainDisplay)(folder)
