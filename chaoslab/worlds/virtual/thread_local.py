"""A thread of the machine has `threading.local`s of its own, those made before the world included.

CPython finds what a thread put into its locals by something that the thread of the process holds, and all threads of a machine share that
one. So it is exchanged whenever another thread goes on. Up to Python 3.12 that is entries in the dictionary of the thread's state
(`thread.local.<address>`), from 3.13 on two fields of the state itself, a key and an object whose end ends what is kept under the key. Where a
later Python keeps neither, the threads of a machine have their locals in common.
"""

from __future__ import annotations

import ctypes
import gc
import sys
import threading
import weakref
from typing import Any, Protocol

from chaoslab.worlds.virtual.context import here


class Owner(Protocol):
    """A thread; `locals` is what leads to its own while another one runs."""

    locals: Any


class Slot(Protocol):
    """Where the running thread's own is found."""

    def new(self) -> Any: ...

    def take(self) -> Any: ...

    def put(self, own: Any, /) -> Any:
        """Gives what was there."""


class ThreadLocals:
    """The exchange, for one machine."""

    def __init__(self) -> None:
        self._tenant: Owner | None = None
        self._slot: Slot | None = None
        self._before: Any = None

    def begin(self, first: Owner) -> None:
        """The first thread sees what the thread of the process has."""
        self._slot = _Dictionary() if sys.version_info < (3, 13) else _fields()
        self._tenant = first
        if self._slot is not None:
            self._before = self._slot.take()

    def enter(self, thread: Owner) -> None:
        """From now on this one runs."""
        before, self._tenant = self._tenant, thread
        if before is thread or before is None or self._slot is None:
            return
        if thread.locals is not None:
            before.locals = self._slot.put(thread.locals)
            return
        world = here.world
        thread.locals = self._slot.new()
        before.locals = self._slot.put(thread.locals)
        here.world = world

    def end(self) -> None:
        """As it was before, but for what was changed within what was there."""
        if self._slot is not None:
            world = here.world
            self._slot.put(self._before)
            here.world = world
            self._slot = self._before = None
        self._tenant = None


class _Dictionary:
    """Up to Python 3.12."""

    _PREFIX = "thread.local."

    def __init__(self) -> None:
        self._state: dict[Any, Any] = ctypes.cast(_state_dictionary(), ctypes.py_object).value

    def new(self) -> dict[str, Any]:
        return {}

    def take(self) -> dict[str, Any]:
        return {key: self._state[key] for key in self._keys()}

    def _keys(self) -> list[str]:
        return [key for key in self._state if type(key) is str and key.startswith(self._PREFIX)]

    def put(self, entries: dict[str, Any]) -> dict[str, Any]:
        """Without those whose local is no more: its address may be another's by now, and only a living one refers to its entries."""
        state = self._state
        old = {key: state.pop(key) for key in self._keys()}
        for key, entry in entries.items():
            if weakref.getweakrefcount(entry):
                state[key] = entry
        return old


_state_dictionary = ctypes.pythonapi.PyThreadState_GetDict
_state_dictionary.restype = ctypes.c_void_p  # lent, and `py_object` would take it for given
_state_dictionary.argtypes = []

_state_address = ctypes.pythonapi.PyThreadState_Get
_state_address.restype = ctypes.c_void_p
_state_address.argtypes = []


Both = tuple[int, int, tuple[object, ...]]
"""The two addresses, and what keeps alive that which is there."""


class _Token:
    """A key of its own, which lives as long as its thread."""


class _Fields:
    """From Python 3.13 on: the two fields, at `key` and `life` words from the state's beginning."""

    def __init__(self, key: int, life: int) -> None:
        self._words = (ctypes.c_void_p * WORDS).from_address(_state_address() or 0)
        self._key, self._life = key, life
        self._now: Both = (self._words[key] or 0, self._words[life] or 0, ())

    def new(self) -> Both:
        key, life = _Token(), _Token()
        return id(key), id(life), (key, life)

    def take(self) -> Both:
        return self._now

    def put(self, both: Both) -> Both:
        old, self._now = self._now, both
        self._words[self._key], self._words[self._life], _ = both
        return old


WORDS = 64
"""So far into the state the fields are looked for; it is longer than that."""


def _fields() -> _Fields | None:
    """Found by what a local of this thread refers to."""
    probe = threading.local()
    probe.known = True
    words = (ctypes.c_void_p * WORDS).from_address(_state_address() or 0)
    held = list(words)
    key = life = None
    for referent in gc.get_referents(probe):
        if isinstance(referent, dict) and len(referent) == 1 and id(next(iter(referent))) in held:
            key = held.index(id(next(iter(referent))))
        elif isinstance(referent, set) and len(referent) == 1:
            found = next(iter(referent))()
            life = held.index(id(found)) if id(found) in held else None
    return None if key is None or life is None else _Fields(key, life)
