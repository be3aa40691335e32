"""A program and its own children as one group, of which nothing outlives this process."""

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType, TracebackType
from typing import IO

ENDING_S = 1.0
"""The time that a group has to end by itself once it was asked to, in seconds."""
SIGNALS = (signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else []))
"""The signals that ask a program to end."""
# `read` fails when the other end of its pipe is gone, however this process ended. The guard itself ignores the
# signals that end the others of a terminal.
_GUARD = """trap "" HUP INT TERM
read -r line || { kill -s TERM -- "-$0"; sleep "$1"; kill -s KILL -- "-$0"; } 2>/dev/null"""
"""The shell's words for a process that ends the group when this process is gone, even if that was killed."""


class ChildGroup:
    """A program, with pipes to its standard input and output by default. `output`: the file that takes both its
    outputs; `grace_s`: the time that the group has once this process is gone; None: it outlives this process. Raises
    OSError: it cannot be run."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        stdin: int | None = subprocess.PIPE,
        output: IO[bytes] | None = None,
        folder: Path | None = None,
        environment: Mapping[str, str] | None = None,
        grace_s: float | None = 0.0,
    ) -> None:
        self._made = subprocess.Popen(
            # A session of its own: a signal to the group reaches the program's children, and a terminal's Ctrl-C does
            # not.
            command,
            stdin=stdin,
            stdout=subprocess.PIPE if output is None else output,
            stderr=output,
            cwd=folder,
            env=environment,
            start_new_session=True,
            bufsize=-1,
        )
        self._guard = None
        if grace_s is not None:
            guarding = ["/bin/sh", "-c", _GUARD, str(self._made.pid), f"{grace_s:g}"]
            self._guard = subprocess.Popen(guarding, stdin=subprocess.PIPE, start_new_session=True)
        self._over = threading.Event()
        if output is None:
            # What is left of its children holds the pipe open, so that its reader would wait for an end for ever.
            threading.Thread(target=self._kill_orphans, daemon=True).start()

    @property
    def process_group_id(self) -> int:
        return self._made.pid

    def poll_exit_code(self) -> int | None:
        """The program's exit code; None while it runs."""
        return self._made.poll()

    @property
    def stdin(self) -> IO[bytes]:
        assert self._made.stdin is not None
        return self._made.stdin

    @property
    def stdout(self) -> IO[bytes]:
        """Its output, which ends with the group."""
        assert self._made.stdout is not None
        return self._made.stdout

    def send_signal(self, number: int) -> None:
        """Sends a signal to the group."""
        with suppress(ProcessLookupError):
            os.killpg(self._made.pid, number)

    def end_without_waiting(self, number: int = signal.SIGTERM) -> None:
        """Asks the group to end by this signal, and kills it if it does not. Returns at once."""
        self.send_signal(number)
        threading.Thread(target=self._kill_after_grace, daemon=True).start()

    def wait(self) -> int:
        """The program's exit code, once it has ended."""
        return self._made.wait()

    def _kill_after_grace(self) -> None:
        if not self._over.wait(ENDING_S):
            self.send_signal(signal.SIGKILL)

    def _kill_orphans(self) -> None:
        """Kills the children that the program leaves behind, which would hold its output."""
        self._made.wait()
        self._over.wait(ENDING_S)
        self.send_signal(signal.SIGKILL)

    def __enter__(self) -> "ChildGroup":
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.kill_and_wait()

    def kill_and_wait(self) -> int:
        """Kills what is left of the group, and returns the program's exit code."""
        # First, so that no thread sends a signal later, when the number may be that of another group.
        self._over.set()
        self.send_signal(signal.SIGKILL)
        for pipe in (self._made.stdin, self._made.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        code = self._made.wait()
        self.detach_remaining_processes()
        return code

    def detach_remaining_processes(self) -> None:
        """Lets what is left of the group go its own way."""
        if self._guard is not None:
            # A line, since the mere end of the pipe is what the guard takes for the death of this process.
            self._guard.communicate(b"over\n")
            self._guard = None


@contextmanager
def forward_signals(tell: Callable[[int], object]) -> Iterator[None]:
    """A context, for the main thread, in which each signal that asks this process to end is told instead."""

    def handle_signal(number: int, _: FrameType | None) -> None:
        tell(number)

    before = {number: signal.signal(number, handle_signal) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
