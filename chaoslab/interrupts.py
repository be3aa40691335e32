"""Ctrl-C and SIGTERM, heard where what is being done may be left: never between two files that belong together."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

SIGNALS = (signal.SIGINT, signal.SIGTERM)
PATIENCE_S = 2.0
"""So long a signal waits to be heard; then it is raised wherever the program stands."""


class Interrupts:
    """A context, for the main thread. The first signal raises KeyboardInterrupt within `heard`, further ones nothing: the winding up that
    follows is bounded, and must not be cut short."""

    def __init__(self, *, patience_s: float = PATIENCE_S) -> None:
        self._patience_s = patience_s
        self._came = self._listening = False
        self._set_timer = signal.setitimer  # in a virtual world, where a signal may find the program, there is none

    @contextmanager
    def heard(self) -> Iterator[None]:
        """What is done within may be left at any moment."""
        self._listening = True
        try:
            if self._came:
                self._raise()
            yield
        finally:
            self._listening = False

    def _signal(self, *_: object) -> None:
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        self._came = True
        if self._listening:
            self._raise()
        self._set_timer(signal.ITIMER_REAL, self._patience_s)

    def _raise(self, *_: object) -> None:
        self._set_timer(signal.ITIMER_REAL, 0)
        self._came = False
        raise KeyboardInterrupt

    def __enter__(self) -> Interrupts:
        handlers = {**dict.fromkeys(SIGNALS, self._signal), signal.SIGALRM: self._raise}
        self._before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
        return self

    def __exit__(self, *_: object) -> None:
        self._set_timer(signal.ITIMER_REAL, 0)
        for number, handler in self._before.items():
            signal.signal(number, handler)
