"""Threads, locks, queues and pools: threading's own code on the machine's threads, through its lowest primitives.

A real lock older than the world is invisible to the machine. If one thread of the machine holds it during a wait and
another wants it, the process would stop; so would a thread that waits in an older `SimpleQueue`. So those held by
modules and classes are wrapped. Those inside older objects are not. The standard library releases its own before it
waits. An older object's own `Lock` held over a wait, or its own `SimpleQueue`, does stop the process. An older `RLock`
excludes no thread of the same machine.
"""

import _thread
import queue
import sys
import threading
from collections.abc import Callable, Iterable
from typing import Any

from greenlet import GreenletExit, getcurrent

from chaoslab.base.boundary import reraise_unless_foreign
from chaoslab.worlds.virtual.machine._locks import Lock, ReLock, SimpleQueue
from chaoslab.worlds.virtual.machine.context import Unsupported, here
from chaoslab.worlds.virtual.machine.machine import VirtualThread
from chaoslab.worlds.virtual.patches import Patch, kept_locks, pools

_threading: Any = threading  # its inner names are not in its types
real_rlock = threading.RLock
real_ident, real_native_id = threading.get_ident, threading.get_native_id
real_counter = _threading._counter
real_make_invoke_excepthook = _threading._make_invoke_excepthook


def make_rlock(*args: Any, **kwargs: Any) -> Any:
    return real_rlock(*args, **kwargs) if here.world is None else ReLock.wrap_real(_real_allocate())


_real_allocate = _thread.allocate_lock


def get_ident() -> int:
    strand = getcurrent()
    # The first thread is the process's own, and keeps its number.
    return strand.number if type(strand) is VirtualThread and not strand.first else real_ident()


def get_native_id() -> int:
    strand = getcurrent()
    return strand.number if type(strand) is VirtualThread and not strand.first else real_native_id()


def next_thread_number() -> int:
    """The N of "Thread-N"."""
    world = here.world
    return int(real_counter()) if world is None else next(world.machine.thread_names)


def interrupt_main(*args: Any) -> None:
    if here.world is not None:
        raise Unsupported("interrupt_main", "end the main thread in another way")
    _real_interrupt(*args)


_real_interrupt = _thread.interrupt_main


_ENDED = (GreenletExit, Unsupported)


def make_invoke_excepthook() -> Callable[[threading.Thread], None]:
    """The hook for a thread's exceptions: a thread ended by its world has not failed, and the world reports what is not
    covered."""
    invoke = real_make_invoke_excepthook()

    def report_unless_ended(thread: threading.Thread) -> None:
        if sys.exc_info()[0] not in _ENDED:
            invoke(thread)

    return report_unless_ended


# Starting.


def _start_machine_thread(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], on_end: Callable[[], None]
) -> VirtualThread:
    """Starts a thread of the machine. `function` is usually the `_bootstrap` of a `Thread`, which lets no exception
    pass."""
    thread: Any = getattr(function, "__self__", None)

    def clean_up_thread() -> None:
        on_end()
        # Ended before it began, it would stay among those that are starting.
        if isinstance(thread, threading.Thread):
            _threading._limbo.pop(thread, None)
            _threading._dangling.discard(thread)
            pools.forget_worker(thread)

    def run_function() -> None:
        try:
            function(*args, **kwargs)
        except SystemExit:
            pass
        except BaseException as error:  # noqa: BLE001 - as in reality, a bare thread's error is shown and ends only that thread
            reraise_unless_foreign(error)
            if not (isinstance(thread, threading.Thread) and isinstance(error.__context__, _ENDED)):
                sys.excepthook(*sys.exc_info())  # else it was ended before it had begun: `Thread` misses its number

    assert here.world is not None
    name = thread.name if isinstance(thread, threading.Thread) else getattr(function, "__qualname__", "a thread")
    return here.world.machine.start_thread(run_function, name=name, over=clean_up_thread)


def start_new_thread(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> int:
    """`_thread.start_new_thread`, which `Thread.start` uses before Python 3.13."""
    if here.world is None:
        return _real_start(function, args, kwargs or {})
    strand = _start_machine_thread(function, args, kwargs or {}, lambda: _release_sentinel(strand))
    return strand.number


_real_start = _thread.start_new_thread


def _release_sentinel(strand: VirtualThread) -> None:
    sentinel, strand.sentinel = strand.sentinel, None
    if sentinel is None:
        return
    if sentinel.locked():
        sentinel.release()
    guard = _threading._shutdown_locks_lock
    real = getattr(guard, "_inner", guard)
    if real.acquire(False):  # else another thread of the process goes through them, and will find it released
        _threading._shutdown_locks.discard(sentinel)
        real.release()


def set_sentinel() -> Any:
    """The lock that is released at the end of the calling thread; `Thread.join` waits for it before Python 3.13."""
    strand = getcurrent()
    if type(strand) is not VirtualThread:
        return _real_sentinel()
    lock = strand.sentinel = Lock()
    return lock


_real_sentinel: Any = getattr(_threading, "_set_sentinel", None)


class ThreadHandle:
    """The handle through which `Thread` knows its thread from Python 3.13 on."""

    def __init__(self, ident: int = 0) -> None:
        self.ident = ident
        self._running = Lock()
        self._done = False

    def begin(self) -> None:
        self._running.acquire()

    def is_done(self) -> bool:
        return self._done

    def _set_done(self) -> None:
        if not self._done:
            self._done = True
            if self._running.locked():
                self._running.release()

    def join(self, timeout: float | None = None) -> None:
        # Given on at once, so that others who join get it too.
        if not self._done and self._running.acquire(True, -1 if timeout is None else timeout):
            self._running.release()


def create_thread_handle() -> Any:
    return _real_handle() if here.world is None else ThreadHandle()


def make_thread_handle(ident: int) -> Any:
    return _real_make_handle(ident) if here.world is None else ThreadHandle(ident)


def start_joinable_thread(function: Callable[[], Any], handle: Any = None, daemon: bool = True) -> Any:
    if here.world is None:
        return _real_start_joinable(function, handle=handle, daemon=daemon)
    if not isinstance(handle, ThreadHandle):
        # From a bare call, which has no handle of its own.
        handle = ThreadHandle()
        thread: Any = getattr(function, "__self__", None)
        if isinstance(thread, threading.Thread):  # made before the world, started in it
            vars(thread)["_handle"] = handle
    handle.begin()
    handle.ident = _start_machine_thread(function, (), {}, handle._set_done).number
    return handle


_real_handle: Any = getattr(_threading, "_ThreadHandle", None)
_real_make_handle: Any = getattr(_threading, "_make_thread_handle", None)
_real_start_joinable: Any = getattr(_threading, "_start_joinable_thread", None)


def allocate_lock() -> Any:
    return Lock()


_one_lock: bool = threading.Lock is _real_allocate
"""From Python 3.13 on `threading.Lock` is a class, and the function that makes a lock is another object. Each needs a
fake of its own, or nobody could tell afterwards which of both a fake stands for."""


def patches() -> Iterable[Patch]:
    yield Patch(threading, "Lock", Lock, everywhere=True)
    yield Patch(threading, "_allocate_lock", Lock if _one_lock else allocate_lock, everywhere=True)
    yield Patch(threading, "RLock", make_rlock, everywhere=True)
    yield Patch(threading, "get_ident", get_ident, everywhere=True)
    yield Patch(threading, "get_native_id", get_native_id, everywhere=True)
    yield Patch(threading, "_counter", next_thread_number)
    yield Patch(threading, "_make_invoke_excepthook", make_invoke_excepthook)
    yield Patch(_thread, "interrupt_main", interrupt_main, everywhere=True)
    yield Patch(_thread, "start_new_thread", start_new_thread, everywhere=True)
    # The two ways of Python before and after 3.13.
    if _real_start_joinable is None:
        yield Patch(threading, "_set_sentinel", set_sentinel)
    else:
        yield Patch(threading, "_start_joinable_thread", start_joinable_thread, everywhere=True)
        yield Patch(threading, "_ThreadHandle", create_thread_handle)
        yield Patch(threading, "_make_thread_handle", make_thread_handle)
    yield Patch(queue, "SimpleQueue", SimpleQueue, everywhere=True)
    yield from pools.patches()
    yield from kept_locks.patches()
