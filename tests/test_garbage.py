"""The garbage collector rests while much is made, and takes up its work where it was.

What concerns all objects of a process happens in a process of its own.
"""

import gc
import subprocess
import sys

from chaoslab.base.garbage import pause_collector

HEAD = """
import gc, weakref
from chaoslab.base.garbage import pause_collector

class Node:
    def __init__(self):
        self.itself = self

gc.collect()
"""
COLLECTED_LATER = """
with pause_collector():
    assert not gc.isenabled()
    gone = weakref.ref(Node())
    kept = [Node() for _ in range(10_000)]
assert gc.isenabled()
gc.collect()
assert gone() is None
"""


def test_what_was_left_is_collected_later() -> None:
    subprocess.run([sys.executable, "-c", HEAD + COLLECTED_LATER], check=True)


def test_a_collector_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        with pause_collector():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
