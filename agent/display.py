"""What a person sees while the agent works: a live line in a terminal, one line a prompt elsewhere."""

from __future__ import annotations

import asyncio
import os
import sys
from collections import Counter
from collections.abc import Awaitable, Callable

from chaoslab.agent.session import Ended, Progress


class Plain:
    """One line when a prompt begins to be interesting, that is when it has ended."""

    def __init__(self, progress: Progress, faults: Callable[[], Awaitable[str]]) -> None:
        self._progress, self._faults = progress, faults
        self._prompt = ""
        progress.started = self._started
        progress.ended = self._ended

    def _started(self, _index: int, prompt: str) -> None:
        self._prompt = prompt

    def _ended(self, ended: Ended) -> None:
        place = f"{self._progress.prompt_index:>3}/{self._progress.prompts}"
        what = "answered" if ended.error_type == "none" else f"no answer: {ended.error_type} error"
        met = ", ".join(f"{count} × {fault}" if count > 1 else fault for fault, count in Counter(ended.met).items())
        whose = f"{ended.trial}, met {met}" if met else ended.trial
        self._say(f"prompt {place} {what} {ended.seconds:6.2f} s  {whose}: {_short(self._prompt, 80)}")

    def _say(self, line: str) -> None:
        try:
            print(line, flush=True)
        except OSError:  # `make lab | head`: the reader has seen enough, or its disk is full; the run goes on
            sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - for the rest of the process

    async def watch(self, interval_s: float) -> None:  # noqa: ARG002 - nothing to refresh
        await asyncio.Event().wait()


class Live:
    """A line that keeps itself up to date: prompt i of n, the call in flight, faults so far."""

    def __init__(self, progress: Progress, faults: Callable[[], Awaitable[str]]) -> None:
        self._progress, self._faults = progress, faults
        self._prompt = ""
        self._said = ""
        progress.started = self._started

    def _started(self, _index: int, prompt: str) -> None:
        self._prompt = prompt

    async def watch(self, interval_s: float) -> None:
        """Until cancelled."""
        from rich.live import Live as Screen
        from rich.text import Text

        with Screen(Text(""), auto_refresh=False, transient=True) as screen:
            while True:
                p = self._progress
                self._said = await self._faults()
                width = max(20, screen.console.width - 1)
                bar = "━" * round(20 * p.processed / p.prompts) if p.prompts else ""
                line = f"{bar:<20} prompt {p.prompt_index} of {p.prompts} · {p.call or 'thinking'} · {self._said} · {self._prompt}"
                screen.update(Text(_short(line, width)), refresh=True)
                await asyncio.sleep(interval_s)


def choose(progress: Progress, faults: Callable[[], Awaitable[str]]) -> Plain | Live:
    """Live in a terminal that rich can draw on, plain otherwise."""
    try:
        import rich  # noqa: F401
    except ImportError:
        return Plain(progress, faults)
    return (Live if sys.stdout.isatty() else Plain)(progress, faults)


def _short(text: str, width: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= width else text[: width - 1] + "…"
