"""A child's lifeline: its standard input. When the parent is gone, however it went, the pipe closes and the child ends."""

from __future__ import annotations

import os
import signal
import threading

STDIN = 0


def end_with_stdin() -> bytearray:
    """From now on this process gets SIGTERM when its standard input closes; what the parent said there first is in what this returns."""
    said = bytearray()

    def watch() -> None:
        while words := os.read(STDIN, 4096):  # not sys.stdin, whose lock the interpreter wants at its end
            said.extend(words)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="lifeline", daemon=True).start()
    return said
