"""The order of sets. What a set holds by its address comes out of it in another order in every process.

Programs are handed sets (`concurrent.futures.wait`) and iterate over them (anyio, when it cancels); so what they hold is numbered, in a
world. asyncio's own tasks and futures are numbered by their loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Any

from anyio._backends._asyncio import CancelScope

from chaoslab.worlds.virtual.here import here
from chaoslab.worlds.virtual.patches import Patch

real_future, real_scope = Future.__init__, CancelScope.__init__


def numbered(real: Callable[..., None]) -> Callable[..., None]:
    """The initializer, which also gives a number."""

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        world = here.world
        if world is not None:
            world.machine.number(self)
        real(self, *args, **kwargs)

    return init


def hashed(self: Any) -> int:
    world = here.world
    return object.__hash__(self) if world is None else world.machine.number_of(self) or object.__hash__(self)


def patches() -> Iterable[Patch]:
    for kind, real in ((Future, real_future), (CancelScope, real_scope)):
        yield Patch(kind, "__init__", numbered(real))
        yield Patch(kind, "__hash__", hashed)
