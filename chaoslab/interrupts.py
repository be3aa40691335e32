"""Ctrl-C and SIGTERM, heard where what is being done may be left: never between two files that belong together."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio

SIGNALS = (signal.SIGINT, signal.SIGTERM)
PATIENCE_S = 2.0
"""So long a signal waits to be heard; then it is raised wherever the program stands, or the task is cancelled once more."""


class Interrupts:
    """A context, for the main thread. The first signal is heard once, within `heard` or `cancelling`, further ones never: the winding up
    that follows is bounded, and must not be cut short. Signals that were held back until somebody would hear them come now."""

    def __init__(self, *, patience_s: float = PATIENCE_S) -> None:
        self._patience_s = patience_s
        self._first, self._came = True, False
        self._hear: Callable[[], None] | None = None
        self._set_timer = signal.setitimer  # in a virtual world, where a signal may find the program, there is none

    @contextmanager
    def heard(self) -> Iterator[None]:
        """What is done within may be left at any moment: a signal raises KeyboardInterrupt."""
        with self._listening(self._raise):
            yield

    @contextmanager
    def cancelling(self, task: asyncio.Task[Any]) -> Iterator[None]:
        """A signal cancels the task, and again each time that patience ends: a framework may have swallowed it."""

        def cancel() -> None:
            self._set_timer(signal.ITIMER_REAL, self._patience_s)
            task.get_loop().call_soon_threadsafe(task.cancel)  # it wakes the loop too

        with self._listening(cancel):
            yield

    @contextmanager
    def _listening(self, hear: Callable[[], None]) -> Iterator[None]:
        self._hear = hear
        try:
            if self._came:
                hear()
            yield
        finally:
            self._hear = None
            self._set_timer(signal.ITIMER_REAL, 0)

    def _signal(self, *_: object) -> None:
        if not self._first:  # not SIG_IGN: one that was about to be handled would be complained about
            return
        self._first, self._came = False, True
        self._set_timer(signal.ITIMER_REAL, self._patience_s)
        if self._hear is not None:
            self._hear()

    def _impatient(self, *_: object) -> None:
        (self._hear or self._raise)()

    def _raise(self) -> None:
        self._set_timer(signal.ITIMER_REAL, 0)
        self._came = False
        raise KeyboardInterrupt

    def __enter__(self) -> Interrupts:
        handlers = {**dict.fromkeys(SIGNALS, self._signal), signal.SIGALRM: self._impatient}
        self._before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        return self

    def __exit__(self, *_: object) -> None:
        self._set_timer(signal.ITIMER_REAL, 0)
        for number, handler in self._before.items():
            signal.signal(number, handler)
