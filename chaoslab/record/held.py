"""A run's main log is locked while its writer lives, which tells a run that goes on from one that was killed. The
system ends the lock with the process, however that ends. The logs of services have locks of their own."""

from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from chaoslab.base.files import open_regular

try:
    import fcntl
except ImportError:  # no such locks on Windows
    fcntl = None  # type: ignore[assignment]

MAIN = "info"
"""The writer of a run's main log."""


def lock_log(log: BinaryIO) -> None:
    """Locks a log until it is closed, unless another writer holds it or its file system has no locks."""
    if fcntl is not None:
        with suppress(OSError):
            fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)


def has_live_writer(folder: Path) -> bool:
    """True if the process that writes the main log of a run lives; False if that cannot be told."""
    path = folder / f"{MAIN}.log"
    if fcntl is None or not path.is_file():  # a pipe would wait for its other end
        return False
    with suppress(OSError), open_regular(path) as log:
        try:
            # Shared, so that two who ask do not take each other for the writer.
            fcntl.flock(log, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
