"""Thread pools and their futures. A pool older than its world uses threads and a queue of the world while in it."""

import logging
import threading
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor, thread
from typing import Any

from greenlet import GreenletExit

from chaoslab.worlds.virtual.machine._locks import Lock, SimpleQueue
from chaoslab.worlds.virtual.machine.context import here
from chaoslab.worlds.virtual.machine.machine import Machine
from chaoslab.worlds.virtual.patches import Patch

_thread_pools: Any = thread
_Pool: Any = ThreadPoolExecutor
real_submit, real_pool_counter = ThreadPoolExecutor.submit, _Pool._counter
_INSIDE = ("_work_queue", "_idle_semaphore", "_threads", "_shutdown_lock")


def submit(self: Any, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
    world = here.world
    # By id: a pool has no name, and `endings` keeps it alive.
    if world is not None and id(self) not in world.machine.pools:
        _move_pool_to_machine(self, world.machine)
    return real_submit(self, fn, *args, **kwargs)


def _move_pool_to_machine(pool: Any, machine: Machine) -> None:
    """Moves a pool to the machine until the run is over. It may be one of an earlier world, whose threads ended with
    that."""
    # Kept for `restore_internals`: the pool is the process's, and goes on after the trial.
    before = {name: getattr(pool, name) for name in _INSIDE}

    # Also for a fresh process after a kill, whose threads are dead.
    def replace_internals() -> None:
        inside = (SimpleQueue(), threading.Semaphore(0), set[threading.Thread](), Lock())
        for name, value in zip(_INSIDE, inside, strict=True):
            setattr(pool, name, value)

    machine.pools[id(pool)] = replace_internals
    replace_internals()

    def restore_internals() -> None:
        for name, value in before.items():
            setattr(pool, name, value)
        if pool._shutdown:  # it was shut down in the world; its own threads are told now
            pool._work_queue.put(None)

    machine.endings.append(restore_internals)


def forget_worker(worker: threading.Thread) -> None:
    """Removes a worker that is over from those that the process waits for at its exit."""
    # Private: concurrent.futures joins all of them at the exit of the interpreter.
    _thread_pools._threads_queues.pop(worker, None)


def next_pool_number() -> int:
    """The N of "ThreadPoolExecutor-N"."""
    world = here.world
    return int(real_pool_counter()) if world is None else next(world.machine.pool_names)


def is_real_failure(record: logging.LogRecord) -> bool:
    """A log filter: a worker that was ended by its world has not failed."""
    return not record.exc_info or record.exc_info[0] is not GreenletExit


def patches() -> Iterable[Patch]:
    # The module logs a worker's GreenletExit as critical, although its world ended it.
    logger = logging.getLogger("concurrent.futures")
    yield Patch(ThreadPoolExecutor, "submit", submit)
    yield Patch(ThreadPoolExecutor, "_counter", staticmethod(next_pool_number))
    yield Patch(logger, "filters", [*logger.filters, is_real_failure])
