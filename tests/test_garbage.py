"""The garbage collector rests while much is made, and takes up its work where it was.

What concerns all objects of a process happens in a process of its own.
"""

import gc
import subprocess
import sys

import pytest

from chaoslab.base.garbage import no_garbage

HEAD = """
import gc, weakref
from chaoslab.base.garbage import frozen, no_garbage, put_aside

class Node:
    def __init__(self):
        self.itself = self

gc.collect()
"""
COLLECTED_LATER = """
with no_garbage():
    assert not gc.isenabled()
    gone = weakref.ref(Node())
    kept = [Node() for _ in range(10_000)]
assert gc.isenabled()
gc.collect()
assert gone() is None
"""
OLD = """
with no_garbage(lasting=True):
    gone = weakref.ref(Node())
    kept = [Node() for _ in range(10_000)]
assert len(gc.get_objects(generation=0)) < 10_000
assert gc.isenabled()
gc.collect(0)
assert gone() is not None
gc.collect()
assert gone() is None
"""
FROZEN_BY_OTHERS = """
kept = [Node() for _ in range(10_000)]
gc.freeze()
with no_garbage(lasting=True):
    pass
assert gc.get_freeze_count() > 10_000
"""
FORKED = """
from contextlib import nullcontext
from chaoslab.execution.forked import Child

kept = [Node() for _ in range(10_000)]
if %r:
    gc.freeze()
with Child(lambda: nullcontext(abs)) as child:
    pass
assert (gc.get_freeze_count() > 10_000) is %r
"""
PUT_ASIDE = """
with put_aside():
    assert frozen() and not gc.isenabled()
    with no_garbage(lasting=True), put_aside():
        pass
    assert frozen() and gc.get_freeze_count() > 1_000
assert not frozen() and gc.isenabled()
"""
SELDOM = """
from chaoslab.base.garbage import SELDOM, seldom
before = gc.get_threshold()
gc.set_threshold(123, 4, 5)
seldom()
assert gc.get_threshold() == (123, 4, 5)
gc.set_threshold(*before)
seldom()
assert gc.get_threshold() == SELDOM and gc.get_freeze_count() > 1_000
"""


@pytest.mark.parametrize(
    "told",
    [COLLECTED_LATER, OLD, FROZEN_BY_OTHERS, PUT_ASIDE, SELDOM, FORKED % (True, True), FORKED % (False, False)],
    ids=["usual", "lasting", "frozen", "put aside", "seldom", "forked while frozen", "forked"],
)
def test_garbage_is_collected_when_it_should_be(told: str) -> None:
    subprocess.run([sys.executable, "-c", HEAD + told], check=True)


def test_a_collector_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        with no_garbage():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
