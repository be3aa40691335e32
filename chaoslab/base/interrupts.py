"""Ctrl-C and SIGTERM, heard where what is being done may be left: never between two files that belong together, nor within an import.

There, an interrupt gets lost, since CPython lets go of a module's lock in a callback that nothing can be raised from; a class that is being
made turns it into an error of its own; and a library that is cut off while its C code begins may take the process down. It gets lost in
a finalizer, too. Where it is lost all the same, as in the callback of a weak reference, it is raised again.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio

SIGNALS = (signal.SIGINT, signal.SIGTERM)
PATIENCE_S = 2.0
"""So long a signal waits to be heard; then it is raised wherever the program stands, or the task is cancelled once more."""
AGAIN_S = 0.02
"""After so long it is looked again whether an import or a finalizer is over."""


class Interrupts:
    """A context, for the main thread. The first signal is heard once, within `heard` or `cancelling`, further ones never: the winding up
    that follows is bounded, and must not be cut short. Signals that were held back until somebody would hear them come now."""

    def __init__(self, *, patience_s: float = PATIENCE_S) -> None:
        self._patience_s = patience_s
        self._first, self._came = True, False
        self._late = 0  # how often it has been put off
        self._raised = False
        self._hear: Callable[[], None] | None = None
        self._set_timer = signal.setitimer  # in a virtual world, where a signal may find the program, there is none

    @contextmanager
    def heard(self) -> Iterator[None]:
        """What is done within may be left at any moment outside an import: a signal raises KeyboardInterrupt."""
        self._raised = False
        with self._listening(self._raise):
            yield
        if self._late or self._raised:  # it was put off until now, or swallowed
            self._raise()

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
        if _harmful(sys._getframe()) and self._late * AGAIN_S < self._patience_s:
            self._late += 1
            self._set_timer(signal.ITIMER_REAL, AGAIN_S)
            return
        self._set_timer(signal.ITIMER_REAL, 0)
        self._came, self._late, self._raised = False, 0, True
        raise KeyboardInterrupt

    def _lost(self, what: sys.UnraisableHookArgs) -> None:
        """Where an exception can go nowhere, CPython prints it and goes on."""
        if self._raised and issubclass(what.exc_type, KeyboardInterrupt):
            self._set_timer(signal.ITIMER_REAL, AGAIN_S)
        else:
            self._before_lost(what)

    def __enter__(self) -> Interrupts:
        handlers = {**dict.fromkeys(SIGNALS, self._signal), signal.SIGALRM: self._impatient}
        self._before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
        self._before_lost, sys.unraisablehook = sys.unraisablehook, self._lost
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        return self

    def __exit__(self, *_: object) -> None:
        self._set_timer(signal.ITIMER_REAL, 0)
        sys.unraisablehook = self._before_lost
        for number, handler in self._before.items():
            signal.signal(number, handler)


def _harmful(frame: FrameType | None) -> bool:
    """Whether the program stands where an interrupt must not be raised."""
    while frame is not None:
        if frame.f_code.co_name == "__del__" or frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


@contextmanager
def heard_outside_imports() -> Iterator[None]:
    """For what imports big libraries, in the main thread and not within another such context. Where there are no timers (Windows), an
    interrupt strikes where it may."""
    if not hasattr(signal, "setitimer"):
        yield
        return
    with Interrupts() as interrupts, interrupts.heard():
        yield
    if interrupts._came:  # in the last moment
        raise KeyboardInterrupt
