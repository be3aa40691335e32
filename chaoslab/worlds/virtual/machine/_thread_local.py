"""A separate set of `threading.local` values for each thread of the machine, also for locals made before the world.

CPython finds the values of a thread through something that the OS thread holds, and all threads of a machine share one
OS thread. So it is exchanged at each switch. Up to Python 3.12 it is a set of entries in the dictionary of the thread's
state (`thread.local.<address>`). From 3.13 on it is two fields of the state itself: a key, and an object whose end
deletes the values under the key. If a later Python has neither, the threads of a machine share their locals.
"""

import ctypes
import gc
import sys
import threading
import weakref
from operator import is_
from typing import Any, Protocol

from chaoslab.worlds.virtual.machine.context import here


class ThreadOwner(Protocol):
    """A thread. `locals` leads to its values while another one runs."""

    locals: Any


class ThreadLocalSlot(Protocol):
    """The place in CPython that leads to the running thread's values."""

    def create_content(self) -> Any: ...

    def read_content(self) -> Any: ...

    def swap_content(self, content: Any, /) -> Any:
        """Replaces the content, and returns the earlier one."""


class ThreadLocals:
    """The exchange for one machine."""

    def __init__(self) -> None:
        self._tenant: ThreadOwner | None = None
        self._slot: ThreadLocalSlot | None = None
        self._before: Any = None

    def adopt_os_values(self, first: ThreadOwner) -> None:
        """Gives the first thread the values of the OS thread."""
        self._slot = _DictionarySlot() if sys.version_info < (3, 13) else _find_thread_state_fields()
        self._tenant = first
        if self._slot is not None:
            self._before = self._slot.read_content()

    def switch_to_thread(self, thread: ThreadOwner) -> None:
        """Makes this the running thread."""
        before, self._tenant = self._tenant, thread
        # Nobody else ran meanwhile, or the machine has not begun.
        if before is thread or before is None or self._slot is None:
            return
        if thread.locals is not None:
            before.locals = self._slot.swap_content(thread.locals)
            return
        # `here` is a local too: a new thread would not know its world.
        world = here.world
        thread.locals = self._slot.create_content()
        before.locals = self._slot.swap_content(thread.locals)
        here.world = world

    def restore_os_values(self) -> None:
        """Restores the values of the OS thread, with the changes made to them."""
        if self._slot is not None:
            world = here.world
            # The exchange takes `here` away as well.
            self._slot.swap_content(self._before)
            here.world = world
            self._slot = self._before = None
        self._tenant = None


class _DictionarySlot:
    """The place up to Python 3.12."""

    _PREFIX = "thread.local."

    def __init__(self) -> None:
        self._state: dict[Any, Any] = ctypes.cast(_state_dictionary(), ctypes.py_object).value

    def create_content(self) -> dict[Any, Any]:
        return {}

    def read_content(self) -> dict[Any, Any]:
        """All entries, since to find those of locals takes longer."""
        return {**self._state}

    def swap_content(self, entries: dict[Any, Any]) -> dict[Any, Any]:
        """Puts the entries of locals in place, except those of deleted ones: a living local refers to its entry, and
        the address of a deleted one may be reused."""
        state, old = self._state, self.read_content()
        # Most switches are between threads that have the same, and comparing is cheaper than writing.
        if len(old) != len(entries) or not all(map(is_, old.values(), entries.values())):
            for key in filter(self._is_local_key, old):
                del state[key]
            for key in filter(self._is_local_key, entries):
                if weakref.getweakrefcount(entries[key]):
                    state[key] = entries[key]
        return old

    def _is_local_key(self, key: Any) -> bool:
        return type(key) is str and key.startswith(self._PREFIX)


_state_dictionary = ctypes.pythonapi.PyThreadState_GetDict
_state_dictionary.restype = ctypes.c_void_p  # a borrowed reference, which `py_object` would take as owned
_state_dictionary.argtypes = []

_state_address = ctypes.pythonapi.PyThreadState_Get
_state_address.restype = ctypes.c_void_p
_state_address.argtypes = []


Both = tuple[int, int, tuple[object, ...]]
"""The two addresses, and the objects that they point to."""


class _Token:
    """A key that lives as long as its thread."""


class _ThreadStateFieldsSlot:
    """The place from Python 3.13 on: two fields, at `key` and `life` words from the state's start."""

    def __init__(self, key: int, life: int) -> None:
        self._words = (ctypes.c_void_p * WORDS).from_address(_state_address() or 0)
        self._key, self._life = key, life
        self._now: Both = (self._words[key] or 0, self._words[life] or 0, ())

    def create_content(self) -> Both:
        key, life = _Token(), _Token()
        # The tuple holds them; what counts is that they live as long as the thread.
        return id(key), id(life), (key, life)

    def read_content(self) -> Both:
        return self._now

    def swap_content(self, both: Both) -> Both:
        old, self._now = self._now, both
        # Written past the counts of references: the objects are kept in the tuples.
        self._words[self._key], self._words[self._life], _ = both
        return old


WORDS = 64
"""The number of words of the state that are searched for the fields; the state is longer."""


def _find_thread_state_fields() -> _ThreadStateFieldsSlot | None:
    """The two fields, found through the references of a local of this thread; None if they are not there."""
    probe = threading.local()
    # Its first use makes the entries that are looked for.
    probe.known = True
    # Offsets differ between versions of Python, so they are looked for.
    memory = (ctypes.c_void_p * WORDS).from_address(_state_address() or 0)
    values = list(memory)
    key = life = None
    for referent in gc.get_referents(probe):
        if isinstance(referent, dict) and len(referent) == 1 and id(next(iter(referent))) in values:
            key = values.index(id(next(iter(referent))))
        elif isinstance(referent, set) and len(referent) == 1:
            life_token = next(iter(referent))()
            life = values.index(id(life_token)) if id(life_token) in values else None
    return None if key is None or life is None else _ThreadStateFieldsSlot(key, life)
