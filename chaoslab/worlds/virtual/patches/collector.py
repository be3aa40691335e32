"""The callbacks of the garbage collector. They are called at moments that depend on the process, so those that were
there before a world see none: what they ask of the clock or of chance would count as the program's."""

import gc
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from chaoslab.worlds.virtual.machine.context import within
from chaoslab.worlds.virtual.patches import Patch


def patches() -> Iterable[Patch]:
    """Nothing: the callbacks are a list."""
    return ()


@contextmanager
def installed() -> Iterator[None]:
    """A context in which the callbacks that are there now are called outside of any world."""
    # The collector may run in any thread at any allocation, so its callbacks must not see the world of that thread.
    # Keyed by the fake, so that one that a program has taken away or added in the world stays as the program left
    # it.
    outside = {id(stand_in := _wrap_outside_world(real)): (stand_in, real) for real in gc.callbacks}
    gc.callbacks[:] = [stand_in for stand_in, _ in outside.values()]
    try:
        yield
    finally:
        gc.callbacks[:] = [
            outside[id(callback)][1] if id(callback) in outside else callback for callback in gc.callbacks
        ]


def _wrap_outside_world(real: Callable[..., Any]) -> Callable[..., Any]:
    def call_outside_world(phase: str, info: dict[str, int]) -> None:
        with within(None):
            real(phase, info)

    return call_outside_world
