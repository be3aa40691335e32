"""A program and its own children as one group, of which nothing outlives this process."""

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType, TracebackType
from typing import IO

ENDING_S = 1.0
"""The time that a group has to end by itself once it was asked to, in seconds."""
SIGNALS = (signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else []))
"""The signals that ask a program to end."""
_GUARD = 'trap "" HUP INT TERM; read -r line || kill -s KILL -- "-$0"'
"""The shell's words for a process that kills the group when this process is gone, even if that was killed."""


class ChildGroup:
    """A program with pipes to its standard input and output. Raises OSError: it cannot be run."""

    def __init__(self, words: Sequence[str]) -> None:
        self._made = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True, bufsize=-1
        )
        guarding = ["/bin/sh", "-c", _GUARD, str(self._made.pid)]
        self._guard = subprocess.Popen(guarding, stdin=subprocess.PIPE, start_new_session=True)
        self._over = threading.Event()
        threading.Thread(target=self._reap, daemon=True).start()

    @property
    def stdin(self) -> IO[bytes]:
        assert self._made.stdin is not None
        return self._made.stdin

    @property
    def stdout(self) -> IO[bytes]:
        """Its output, which ends with the group."""
        assert self._made.stdout is not None
        return self._made.stdout

    def send(self, number: int) -> None:
        """Sends a signal to the group."""
        with suppress(ProcessLookupError):
            os.killpg(self._made.pid, number)

    def end(self, number: int = signal.SIGTERM) -> None:
        """Asks the group to end by this signal, and kills it if it does not. Returns at once."""
        self.send(number)
        threading.Thread(target=self._kill_late, daemon=True).start()

    def wait(self) -> int:
        """The program's exit code, once it has ended."""
        return self._made.wait()

    def _kill_late(self) -> None:
        if not self._over.wait(ENDING_S):
            self.send(signal.SIGKILL)

    def _reap(self) -> None:
        """Kills the children that the program leaves behind, which would hold its output."""
        self._made.wait()
        self._over.wait(ENDING_S)
        self.send(signal.SIGKILL)

    def __enter__(self) -> "ChildGroup":
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._over.set()
        self.send(signal.SIGKILL)
        with suppress(OSError):
            self.stdin.close()
        self.stdout.close()
        self._made.wait()
        self._guard.communicate(b"over\n")


@contextmanager
def told_of_signals(tell: Callable[[int], object]) -> Iterator[None]:
    """A context, for the main thread, in which each signal that asks this process to end is told instead."""

    def hear(number: int, _: FrameType | None) -> None:
        tell(number)

    before = {number: signal.signal(number, hear) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
