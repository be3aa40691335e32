"""Python's garbage collector, turned off for a while."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

PYTHONS_OWN = 1_000
"""More objects than a Python freezes of its own (3.12 begins with 375), and fewer than a program has that freezes."""


def frozen() -> bool:
    """True if the program has put its objects aside with `gc.freeze`. The lab then leaves them there."""
    return gc.get_freeze_count() > PYTHONS_OWN


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
        if lasting and not frozen():
            gc.freeze()  # puts everything aside
            gc.unfreeze()  # and back, among the oldest
        if collecting:
            gc.enable()
