"""Python's garbage collector, turned off for a while."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def pause_collector() -> Iterator[None]:
    """Turns the garbage collector off while many objects are made and kept: it would take as long as the reading of a
    log, and a fifth of the time in which libraries load."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
