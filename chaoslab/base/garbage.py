"""Python's garbage collector, turned off for a while, or turned down in a worker process."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

PYTHONS_OWN = 1_000
"""More objects than a Python freezes of its own (3.12 begins with 375), and fewer than a program has that freezes."""
SELDOM = (50_000, 20, 20)
"""The collector's thresholds in a process that only runs trials: Python's own (700, 10, 10) cost a tenth of a small
trial."""
_THRESHOLDS = {(700, 10, 10), (2000, 10, 10), (2000, 10, 0)}
"""Those that Python 3.11 and 3.12 have, and later ones."""


def seldom() -> None:
    """Puts aside what a worker process has loaded, and collects less often there unless the program chose otherwise."""
    gc.freeze()
    if gc.get_threshold() in _THRESHOLDS:
        gc.set_threshold(*SELDOM)


_aside = {"theirs": False, "ours": False}


def frozen() -> bool:
    """True if the objects of the process were put aside with `gc.freeze`. The lab then leaves them there."""
    if not (_aside["ours"] or _aside["theirs"]):  # to count them takes a tenth of a second in a large program
        _aside["theirs"] = gc.get_freeze_count() > PYTHONS_OWN
    return _aside["ours"] or _aside["theirs"]


@contextmanager
def put_aside() -> Iterator[None]:
    """Collects garbage, puts all objects aside unless others did, and turns the collector off, until the end."""
    collecting, left_alone = gc.isenabled(), frozen()
    gc.collect()
    if not left_alone:
        gc.freeze()
        _aside["ours"] = True
    gc.disable()
    try:
        yield
    finally:
        if not left_alone:
            gc.unfreeze()
            _aside["ours"] = False
        if collecting:
            gc.enable()


@contextmanager
def no_garbage(*, lasting: bool = False) -> Iterator[None]:
    """Turns the garbage collector off while many objects are made and kept: it would take as long as the reading of a
    log, and a fifth of the time in which libraries load. `lasting`: what was made counts as old at the end. Else the
    collector goes through all of it at once."""
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
