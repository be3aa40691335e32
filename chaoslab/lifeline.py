"""A child's lifeline: its standard input. When the parent is gone, however it went, the pipe closes and the child ends."""

from __future__ import annotations

import os
import signal
import threading

STDIN = 0


def end_with_stdin() -> None:
    """From now on this process gets SIGTERM when its standard input closes."""

    def watch() -> None:
        while os.read(STDIN, 1):  # not sys.stdin, whose lock the interpreter wants at its end
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="lifeline", daemon=True).start()
