"""Python's garbage collector, turned off for a while."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_garbage(*, lasting: bool = False) -> Iterator[None]:
    """Turns the garbage collector off while many objects are made and kept: it would take as long as the reading of a
    log, and a fifth of the time in which libraries load.

    `lasting`: what was made counts as old at the end. Else the collector goes through all of it at once.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if lasting and not gc.get_freeze_count():
            gc.freeze()  # puts everything aside
            gc.unfreeze()  # and back, among the oldest
        if collecting:
            gc.enable()
