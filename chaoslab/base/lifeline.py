"""The lifeline of a child process: its standard input. When the parent is gone, the pipe closes and the child ends."""

import os
import signal
import threading

STDIN = 0


def terminate_on_stdin_end() -> bytearray:
    """Sends this process SIGTERM when its standard input closes. Returns a buffer of the bytes that the parent wrote
    there."""
    received = bytearray()
    main = threading.main_thread().ident
    assert main is not None

    def watch_stdin() -> None:
        while chunk := os.read(STDIN, 4096):  # not sys.stdin, whose lock the interpreter wants at its end
            received.extend(chunk)
        # To the main thread, which waits: after SIGCONT the kernel may give the process's signal to this one instead.
        signal.pthread_kill(main, signal.SIGTERM)

    threading.Thread(target=watch_stdin, name="lifeline", daemon=True).start()
    return received
