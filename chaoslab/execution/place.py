"""Where one trial of a user's agent happens: in a world of virtual time, or in this process in real time."""

from __future__ import annotations

import asyncio
from asyncio import _get_running_loop, _set_running_loop
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

from chaoslab.base.clock import system
from chaoslab.worlds.virtual.context import own_line


class Place(Protocol):
    """Where one trial happens."""

    def entered(self) -> AbstractContextManager[None]: ...
    def run(self, work: Callable[[], Any], *, over: Callable[[], object]) -> Any:
        """`over` is called when the work is: what those whom it has left behind still do is no part of it."""

    def run_async(self, work: Callable[[], Coroutine[Any, Any, Any]], *, over: Callable[[], object]) -> Any: ...

    def pace(self, function: str) -> int:
        """How many calls may be made until this is asked again, this one of that function among them; ends a trial that would never end."""


class Here:
    """This process, in real time. `late`: which call came after the deadline, if one did: it raises SystemExit, which agents do not take for
    one more failure, event loops end with, and threads end by without a word."""

    def __init__(self, deadline_s: float) -> None:
        self.deadline_s, self.deadline, self.late = deadline_s, system.monotonic() + deadline_s, ""

    def pace(self, function: str) -> int:
        if system.monotonic() <= self.deadline:
            return 1
        self.late = self.late or f"{own_line()} calls {function} after the deadline of {self.deadline_s:g} s"
        raise SystemExit(self.late)

    def entered(self) -> AbstractContextManager[None]:
        return nullcontext()

    def run(self, work: Callable[[], Any], *, over: Callable[[], object]) -> Any:
        outer = _get_running_loop()
        _set_running_loop(None)  # in a notebook, say: the loop there rests while the trial's own runs
        try:
            return work()
        finally:
            over()
            _set_running_loop(outer)

    def run_async(self, work: Callable[[], Coroutine[Any, Any, Any]], *, over: Callable[[], object]) -> Any:
        return self.run(lambda: asyncio.run(work()), over=over)
