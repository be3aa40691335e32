"""A fixed order of sets. A set of objects hashed by address is iterated in another order in every process.

Programs get sets (`concurrent.futures.wait`) and iterate over them (anyio, when it cancels). So in a world such objects
are numbered. asyncio's tasks and futures are numbered by their loop; those made by hand are of the loop's class.
Subclasses defined by a program stay as they are.
"""

import asyncio
import sys
import types
from asyncio.tasks import _GatheringFuture  # type: ignore[attr-defined]
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Any

from chaoslab.worlds.virtual.machine.context import here
from chaoslab.worlds.virtual.network import _loop
from chaoslab.worlds.virtual.patches import Patch

LATER = ("anyio._backends._asyncio",)
real_asyncio_future, real_asyncio_task = asyncio.Future, asyncio.Task


def wrap_init_numbering(real: Callable[..., None]) -> Callable[..., None]:
    """The initializer, extended to number the object."""

    def init_and_number(self: Any, *args: Any, **kwargs: Any) -> None:
        world = here.world
        if world is not None:
            world.machine.number_object(self)
        real(self, *args, **kwargs)

    return init_and_number


def hash_by_number(self: Any) -> int:
    world = here.world
    # 0 is no number, as counters begin at 1.
    return object.__hash__(self) if world is None else world.machine.get_object_number(self) or object.__hash__(self)


def _make_fake_class(real: type, make: Callable[..., Any]) -> type:
    """A fake for the class whose call in a world uses `make`. Its subclasses are subclasses of the real class."""

    class Kind(type):
        def __new__(cls, name: str, bases: tuple[type, ...], names: dict[str, Any], **kwargs: Any) -> Any:
            if not bases:
                # The fake itself has no bases.
                return super().__new__(cls, name, bases, names)
            # A program's own class derives from the real one, and stays what it was.
            bases = tuple(real if base is stand_in else base for base in bases)
            kind, _, kwargs = types.prepare_class(name, bases, kwargs)
            return kind(name, bases, names, **kwargs)

        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            return (real if here.world is None else make)(*args, **kwargs)

        def __instancecheck__(cls, instance: Any) -> bool:
            return isinstance(instance, real)

        def __subclasscheck__(cls, kind: type) -> bool:
            return issubclass(getattr(kind, "__mro__", (kind,))[0], real)  # of a fake: the real one

        def __getattribute__(cls, name: str) -> Any:
            # Whatever is asked of the class is the real one's.
            return getattr(real, name)

    stand_in: Any = Kind(real.__name__, (), {})
    return stand_in  # type: ignore[no-any-return]


def _create_numbered_task(coro: Any, *, name: Any = None, **kwargs: Any) -> Any:
    """A task with its loop's number, since asyncio numbers tasks over the life of the process."""
    loop = kwargs.get("loop") or asyncio.get_event_loop()
    if name is None and isinstance(loop, _loop.VirtualLoop):
        name = f"Task-{next(loop._tasks_named)}"
    return _loop.Task(coro, name=name, **kwargs)


def patches() -> Iterable[Patch]:
    # anyio's scopes are kept in sets when they are cancelled.
    scopes = (getattr(sys.modules.get(name), "CancelScope", None) for name in LATER)
    for kind in filter(None, (Future, _GatheringFuture, *scopes)):
        yield Patch(kind, "__init__", wrap_init_numbering(kind.__init__))
        yield Patch(kind, "__hash__", hash_by_number)
    yield Patch(asyncio, "Future", _make_fake_class(real_asyncio_future, _loop.Future), everywhere=True)
    yield Patch(asyncio, "Task", _make_fake_class(real_asyncio_task, _create_numbered_task), everywhere=True)
