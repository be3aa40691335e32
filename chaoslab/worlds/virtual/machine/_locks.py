"""Locks and queues in which a thread of the machine parks. For other threads they are the real ones they hold.

No guard is needed here, since threads of the machine switch only when they park. The real lock inside each keeps it
correct after its world, for example if a module imported in the world made it.

The lock inside may be one that the whole process needs, such as those of `threading`: if it stayed held, no thread
could start any more. So nothing can wait, end the thread or fail between taking it and saying so, and it is released
whatever becomes of those who wait for it. If another thread of the process holds it, it is really waited for.
"""

import queue
import threading
from _thread import allocate_lock
from collections import deque
from types import GenericAlias
from typing import Any

from greenlet import getcurrent

from chaoslab.worlds.virtual.machine.context import here
from chaoslab.worlds.virtual.machine.machine import Machine, VirtualThread, Waiter

RealLock, RealQueue = type(allocate_lock()), queue.SimpleQueue
# The most real seconds that a thread of the machine waits until a lock is released by one that is in no world.
PATIENCE_S = 1.0


class _Either(type):
    """A metaclass for which a real lock, or a real queue, is an instance too."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return type.__instancecheck__(cls, instance) or type(instance) is _REAL.get(cls)


class Lock(metaclass=_Either):
    """`threading.Lock`: a class, since some programs keep it as a class attribute. The thread that has waited longest
    gets it."""

    __slots__ = ("__weakref__", "_holder", "_inner", "_waiters")
    _holder: Any
    """The greenlet that holds it in a world; None if it is free, or held outside of any. That one is not kept: greenlet
    frees the first greenlet of a thread that is over, though a frame still refers to it."""
    _inner: Any
    _waiters: deque[Waiter]

    def __new__(cls) -> Any:
        # Outside of a world it is the real thing, so modules that keep the class get real locks there.
        if here.world is None:
            return allocate_lock()
        return cls.wrap_real(allocate_lock())

    @classmethod
    def wrap_real(cls, inner: Any) -> Any:
        """Wraps a real lock, so that a thread of the machine can wait for it."""
        self = object.__new__(cls)
        self._inner, self._holder, self._waiters = inner, None, deque()
        return self

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        # The checks and the words of CPython's own.
        if timeout != -1:
            if not blocking:
                raise ValueError("can't specify a timeout for a non-blocking call")
            if timeout < 0:
                raise ValueError("timeout value must be a non-negative number")
            if timeout > threading.TIMEOUT_MAX:
                raise OverflowError("timeout value is too large")
        world = here.world
        if world is not None:
            # Before the lock is taken: if the run ended at this step, nobody would release it.
            world.machine.steps.locks.count_step("takes a lock", "times")
        if self._inner.acquire(False) or self._wait_for_lock(timeout if blocking else 0):
            self._holder = None if world is None else getcurrent()
            return True
        return False

    def _wait_for_lock(self, timeout: float) -> bool:
        world = here.world
        if world is None:
            return bool(self._inner.acquire(bool(timeout), timeout or -1))
        if not timeout:
            # An endless loop of tries takes no virtual time.
            world.machine.steps.tries.count_step("asks for a lock that is held", "times")
            return False
        if self._holder is None:  # it is released in real time, by one that can wake no thread of the machine
            if self._inner.acquire(True, PATIENCE_S):
                return True
            # So that the next one parks at once: real patience is paid once a lock.
            self._holder = _SOMEBODY
        return self._park_until_given(world.machine, timeout)

    def _park_until_given(self, machine: Machine, timeout: float) -> bool:
        waiter = Waiter(machine)
        self._waiters.append(waiter)
        try:
            is_given = waiter.park(self._describe_holder, None if timeout < 0 else machine.now + timeout)
        except BaseException:
            if waiter.is_woken:  # given to a thread that is ending
                self._release_to_next()
            elif not waiter.strand.killed:  # else it may have been passed over
                self._waiters.remove(waiter)
            raise
        if not is_given:
            self._waiters.remove(waiter)
        return is_given

    def release(self) -> None:
        self._release_to_next()

    def _release_to_next(self) -> None:
        # Given on without being released: another thread could take it between, and the first in line would starve.
        waiters, is_given = self._waiters, False
        try:
            while waiters and not is_given:
                waiter = waiters[0]
                is_given = waiter.wake()
                waiters.popleft()
                self._holder = waiter.strand
        finally:
            if not is_given:
                # With nobody to give it to; in a `finally`, as a wake may end the run.
                self._holder = None
                self._inner.release()

    def free_from_dead_threads(self, machine: Machine) -> None:
        """Takes the lock from a thread of the machine that was left behind or killed, and out of the wait of such
        threads."""
        for waiter in [candidate for candidate in self._waiters if candidate.machine is machine]:
            # Threads that are killed while the machine runs on, or all that are left when it stops.
            if machine.stopping or waiter.strand.killed:
                self._waiters.remove(waiter)
        holder = self._holder
        # Of this machine only: a lock may be shared with a later one.
        if isinstance(holder, VirtualThread) and holder.parent is machine.hub and (machine.stopping or holder.killed):
            self._release_to_next()

    def locked(self) -> bool:
        return bool(self._inner.locked())

    _is_owned = locked
    """The test that `threading.Condition` uses, without trying to acquire."""

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        """Calls no deeper than `__enter__` does: near the limit of recursion the lock could be taken, but not
        released."""
        self._release_to_next()

    def _at_fork_reinit(self) -> None:
        self._inner._at_fork_reinit()
        self._holder = None
        self._waiters.clear()

    def _describe_holder(self) -> str:
        holder = self._holder
        if isinstance(holder, VirtualThread):
            return "a lock held by itself" if self._is_waiting(holder) else f"a lock held by {holder.name}"
        return "a lock"

    def _is_waiting(self, strand: VirtualThread) -> bool:
        return any(waiter.strand is strand for waiter in self._waiters)


class ReLock(Lock):
    """`threading.RLock()`."""

    __slots__ = ("_count",)
    _count: int

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        # By greenlet and not by thread: all threads of the machine are one to the system.
        if self._holder is getcurrent():
            self._count += 1
            return True
        if Lock.acquire(self, blocking, timeout):
            self._holder, self._count = getcurrent(), 1
            return True
        return False

    def release(self) -> None:
        if self._holder is not getcurrent():
            raise RuntimeError("cannot release un-acquired lock")
        self._count -= 1
        if not self._count:
            self._release_to_next()

    def __exit__(self, *_: object) -> None:
        self.release()

    # The methods that `threading.Condition` uses.

    def _is_owned(self) -> bool:
        return self._holder is getcurrent()

    def _release_save(self) -> int:
        if self._holder is not getcurrent():
            raise RuntimeError("cannot release un-acquired lock")
        count, self._count = self._count, 0
        self._release_to_next()
        return count

    def _acquire_restore(self, state: int) -> None:
        Lock.acquire(self)
        self._holder, self._count = getcurrent(), state

    def _recursion_count(self) -> int:
        return self._count if self._holder is getcurrent() else 0


class SimpleQueue(metaclass=_Either):
    """`queue.SimpleQueue`; a destructor may put something into it at any time."""

    __slots__ = ("__weakref__", "_inner", "_waiters")
    _inner: Any
    _waiters: deque[Waiter]

    def __new__(cls) -> Any:
        return RealQueue() if here.world is None else cls.wrap_real(RealQueue())

    @classmethod
    def wrap_real(cls, inner: Any) -> Any:
        """Wraps a real queue, so that a thread of the machine can wait for it."""
        self = object.__new__(cls)
        self._inner, self._waiters = inner, deque()
        return self

    __class_getitem__: Any = classmethod(GenericAlias)

    def put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:  # noqa: ARG002
        self._inner.put(item)
        woken = False
        # The first that still waits: one may have been ended meanwhile.
        while self._waiters and not woken:
            woken = self._waiters[0].wake()
            self._waiters.popleft()

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        world = here.world
        if world is None:
            return self._inner.get(block, timeout)
        if not block:
            timeout = 0
        if timeout is not None and timeout < 0:
            raise ValueError("'timeout' must be a non-negative number")
        machine = world.machine
        until = None if timeout is None else machine.now + timeout
        # Asked anew after each wake, since a destructor may have taken the item.
        while True:
            try:
                return self._inner.get(False)
            except queue.Empty:
                if until is not None and machine.now >= until:
                    machine.steps.tries.count_step("asks an empty queue", "times")
                    raise
            waiter = Waiter(machine)
            self._waiters.append(waiter)
            try:
                waiter.park("SimpleQueue.get", until)
            finally:
                # Woken ones were taken out by `put`.
                if not (waiter.is_woken or waiter.strand.killed):
                    self._waiters.remove(waiter)

    def put_nowait(self, item: Any) -> None:
        self.put(item)

    def get_nowait(self) -> Any:
        return self.get(False)

    def empty(self) -> bool:
        return bool(self._inner.empty())

    def qsize(self) -> int:
        return int(self._inner.qsize())


_SOMEBODY = object()
"""The holder of a lock that was waited for in vain."""

_REAL: dict[type, type] = {Lock: RealLock, SimpleQueue: RealQueue}
