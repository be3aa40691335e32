"""Ctrl-C and SIGTERM, raised only where the work may be left: not between two files that belong together, nor within
an import.

Within an import CPython would lose an interrupt, since it releases a module's lock in a callback that nothing can be
raised from. A class that is being made turns the interrupt into an error of its own. A library that is cut off while
its C code begins may crash the process. An interrupt within a finalizer is lost too. One that is lost all the same, as
in the callback of a weak reference, is raised again.
"""

from __future__ import annotations

import select
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

from chaoslab.base.clock import system

if TYPE_CHECKING:
    import asyncio

SIGNALS = (signal.SIGINT, signal.SIGTERM)
_ALL_SIGNALS = tuple(signal.valid_signals())
PATIENCE_S = 2.0
"""The most seconds that a signal waits. Then it is raised wherever the program is, or the task is cancelled once
more."""
LATE_S = 0.2
"""Seconds within which a signal that is sent to all processes of a command has reached each of them."""
AGAIN_S = 0.02
"""Seconds until the next check that an import or a finalizer is over."""
LOOK_S = 0.05
"""The most seconds between the setting of a flag and the end of a wait for it."""


class Flag:
    """An event that the handler of a signal may set. One of `threading` may not be set there: `set` takes a lock that
    the interrupted thread holds for a moment within `wait`, and the process would stand still for ever."""

    def __init__(self) -> None:
        self._set = False

    def set(self) -> None:
        self._set = True

    def clear(self) -> None:
        self._set = False

    def is_set(self) -> bool:
        return self._set

    def wait(self, timeout_s: float | None = None) -> None:
        """Returns when it is set, or after so many seconds."""
        until = None if timeout_s is None else system.monotonic() + timeout_s
        while not self._set and (until is None or system.monotonic() < until):
            system.sleep(LOOK_S)


class Interrupts:
    """A context, for the main thread. The first signal takes effect once, within `raise_on_signal` or
    `cancel_on_signal`. Further signals have no effect: the winding up that follows is bounded and must not be cut
    short. Nor has the same signal that reaches this process twice, a moment apart: one that is sent to a command's
    group is passed on by its first process too. Entering the context unblocks signals that were held back."""

    def __init__(self, *, patience_s: float = PATIENCE_S) -> None:
        self._patience_s = patience_s
        self._first, self._came = True, False
        self._late = 0  # times that it has been put off
        self._raised = False
        self._hear: Callable[[], None] | None = None
        self._set_timer = signal.setitimer  # kept, since a virtual world has none and a signal may come there

    @contextmanager
    def raise_on_signal(self) -> Iterator[None]:
        """A context in which a signal raises KeyboardInterrupt, at any moment outside an import."""
        self._raised = False
        with self._listen_for_signal(self._raise_interrupt):
            yield
        if self._late or self._raised:  # it was put off until now, or swallowed
            self._raise_interrupt()

    def raise_if_signaled(self) -> None:
        """Raises KeyboardInterrupt if a signal has come, also if one was raised before and swallowed."""
        if self._came or self._late or self._raised:
            self._raise_interrupt()

    @contextmanager
    def cancel_on_signal(self, task: asyncio.Task[Any]) -> Iterator[None]:
        """A context in which a signal cancels the task, again after each `patience_s`, since a framework may swallow
        it."""

        def cancel_task() -> None:
            self._set_timer(signal.ITIMER_REAL, self._patience_s)
            task.get_loop().call_soon_threadsafe(task.cancel)  # it wakes the loop too

        with self._listen_for_signal(cancel_task):
            yield

    @contextmanager
    def _listen_for_signal(self, hear: Callable[[], None]) -> Iterator[None]:
        self._hear = hear
        try:
            if self._came:
                hear()
            yield
        finally:
            self._hear = None
            self._set_timer(signal.ITIMER_REAL, 0)

    def _handle_signal(self, *_: object) -> None:
        if not self._first:  # not SIG_IGN: Python would report a signal that was about to be handled
            return
        self._first, self._came = False, True
        self._set_timer(signal.ITIMER_REAL, self._patience_s)
        if self._hear is not None:
            self._hear()

    def _handle_timer(self, *_: object) -> None:
        (self._hear or self._raise_interrupt)()

    def _raise_interrupt(self) -> None:
        if _is_unsafe_to_interrupt(sys._getframe()) and self._late * AGAIN_S < self._patience_s:
            self._late += 1
            self._set_timer(signal.ITIMER_REAL, AGAIN_S)
            return
        self._set_timer(signal.ITIMER_REAL, 0)
        self._came, self._late, self._raised = False, 0, True
        raise KeyboardInterrupt

    def _handle_unraisable(self, what: sys.UnraisableHookArgs) -> None:
        """Raises an interrupt again that CPython could not raise, which it would only print."""
        if self._raised and issubclass(what.exc_type, KeyboardInterrupt):
            self._set_timer(signal.ITIMER_REAL, AGAIN_S)
        else:
            self._before_lost(what)

    def __enter__(self) -> Interrupts:
        handlers = {**dict.fromkeys(SIGNALS, self._handle_signal), signal.SIGALRM: self._handle_timer}
        self._before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
        self._before_lost, sys.unraisablehook = sys.unraisablehook, self._handle_unraisable
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        return self

    def __exit__(self, *_: object) -> None:
        self._set_timer(signal.ITIMER_REAL, 0)
        if not self._first:
            # The signal that its first process passes on may still come, and has to find this handler.
            select.select([], [], [], LATE_S)
        sys.unraisablehook = self._before_lost
        for number, handler in self._before.items():
            signal.signal(number, handler)


def _is_unsafe_to_interrupt(frame: FrameType | None) -> bool:
    """Tells if the program is in an import or a finalizer, in which no interrupt may be raised."""
    while frame is not None:
        if frame.f_code.co_name == "__del__" or frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


@contextmanager
def restore_signal_handlers() -> Iterator[None]:
    """A context after which each signal has the handler that it had before. An agent may install one, also without
    knowing: `asyncio.run` has its own for Ctrl-C, which stays where its thread is killed within it."""
    if threading.get_ident() != threading.main_thread().ident:  # only the main thread may install a handler
        yield
        return
    before = {number: signal.getsignal(number) for number in _ALL_SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            # None: a library written in C has its own, which Python cannot install again.
            if handler is not None and signal.getsignal(number) != handler:
                signal.signal(number, handler)


@contextmanager
def interrupt_outside_imports() -> Iterator[None]:
    """A context for code that imports big libraries, in the main thread and not within another such context. On a
    system without timers (Windows) an interrupt is raised at once."""
    if not hasattr(signal, "setitimer"):
        yield
        return
    with Interrupts() as interrupts, interrupts.raise_on_signal():
        yield
    if interrupts._came:  # in the last moment
        raise KeyboardInterrupt


_checked: list[Interrupts] = []


@contextmanager
def interrupt_at_checks() -> Iterator[None]:
    """A context for the main thread in which a signal is raised at the next `check`, since a program that is run in it
    may swallow an interrupt; after two seconds without a check it is raised wherever the program is. On a system
    without timers (Windows) it is raised at once."""
    if not hasattr(signal, "setitimer"):
        yield
        return
    with Interrupts() as interrupts:
        _checked.append(interrupts)
        try:
            yield
        finally:
            _checked.pop()
    interrupts.raise_if_signaled()  # it came in the last moment


def check_interrupt() -> None:
    """Raises KeyboardInterrupt if a signal has come in `interrupt_at_checks`; does nothing outside of it."""
    for interrupts in _checked:
        interrupts.raise_if_signaled()


def wait_and_check_interrupt() -> None:
    """`check`, for one whose child a signal has ended, and who may get the same signal a little later."""
    select.select([], [], [], LATE_S)
    check_interrupt()
