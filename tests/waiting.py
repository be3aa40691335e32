"""Waiting for other threads and processes. Loads next to nothing: workers that are spawned load it too."""

import threading
from collections.abc import Callable

from chaoslab.base.clock import system

DEADLINE_S = 60.0
"""After that, what takes a second at most on an idle machine is taken for hung."""
HUNG_S = 600.0
"""After that, what takes as long as the machine is busy, such as new processes, is taken for hung."""
IMPATIENT_S = 3.0
"""The patience of a client that is to give up: whatever no fault holds back is there before, also on a busy machine."""


def eventually(true: Callable[[], bool], *, within_s: float = DEADLINE_S) -> None:
    """Waits until something that another thread or process brings about is so."""
    deadline = system.monotonic() + within_s
    while not true():
        assert system.monotonic() < deadline, "it never came"
        threading.Event().wait(0.005)


def together(*works: Callable[[], object]) -> None:
    """Does these in threads of their own, all at once, and waits until all are done."""
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
