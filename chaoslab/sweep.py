"""Many trials: done one after the other here, or side by side in processes, and handed on in order.

The work is a value that any process can take (`Work`), and so is each unit of it and what comes of that. A worker that dies takes no
trial with it: what it had in hand is done again, each trial alone, so that the one that kills is known by name.
"""

from __future__ import annotations

import itertools
import multiprocessing
import signal
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, ExitStack
from typing import Any, Generic, Protocol, TypeVar

U = TypeVar("U")
R = TypeVar("R")
U_contra = TypeVar("U_contra", contravariant=True)
R_co = TypeVar("R_co", covariant=True)

CHUNK_MAX = 25
"""Units that a worker is given at once: sending them one by one would cost more than small ones take."""
AHEAD = 3
"""Chunks handed out for each worker beyond what it works on, so that it never waits."""
TRIES = 2
"""How often a unit may kill a worker that has nothing else to do."""


class Work(Protocol, Generic[U_contra, R_co]):
    """What all units have in common, picklable. `opened` gives what does one, in the process that does it."""

    def opened(self) -> AbstractContextManager[Callable[[U_contra], R_co]]: ...


class WorkerLost(Exception):
    """A unit killed every worker that it was given to."""


def spread(
    work: Work[U, R],
    units: Sequence[U],
    *,
    jobs: int = 1,
    method: str | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> Iterator[R]:
    """What comes of each unit, in the units' order.

    `jobs`: processes; 1 does everything in this one. `method`: how they are started (fork, spawn, forkserver); by default forked where
    nothing forbids it, since that spares them loading everything again. `tell` is told in a line of workers that died. When it is
    interrupted, what was done already is still handed on before the interrupt goes its way.

    Raises:
        WorkerLost: names the unit; what came before it has been handed on.
    """
    if jobs <= 1:
        with work.opened() as do:
            for unit in units:
                yield do(unit)
        return
    yield from _side_by_side(work, units, jobs, method or _default_method(), tell)


def _default_method() -> str:
    """Forking copies only the thread that forks, so it is left alone where there are others."""
    can = "fork" in multiprocessing.get_all_start_methods() and threading.active_count() == 1
    return "fork" if can else "spawn"


def _side_by_side(
    work: Work[U, R], units: Sequence[U], jobs: int, method: str, tell: Callable[[str], None]
) -> Generator[R, None, None]:
    size = max(1, min(CHUNK_MAX, len(units) // (jobs * 4)))
    left = deque(list(units[begin : begin + size]) for begin in range(0, len(units), size))
    out: deque[tuple[list[U], Future[list[R]]]] = deque()
    pool = _pool(work, jobs, method)
    try:
        while left or out:
            while left and len(out) < jobs * (1 + AHEAD):
                chunk = left.popleft()
                out.append((chunk, pool.submit(_do, chunk)))
            chunk, future = out[0]
            try:
                done: Iterable[R] = future.result()
            except BrokenProcessPool:
                _end(pool)
                tell(
                    f"a worker died: {len(chunk)} trial{'s' if len(chunk) > 1 else ''} in its hands will be done again"
                )
                done = _alone(work, chunk, method)
                pool = _pool(work, jobs, method)
                out = deque((again, _again(pool, again, was)) for again, was in out)
            yield from done
            out.popleft()
    except KeyboardInterrupt:
        for _, future in itertools.takewhile(lambda entry: entry[1].done(), out):
            if future.exception() is None:
                yield from future.result()
        raise
    finally:
        _end(pool)


def _again(pool: ProcessPoolExecutor, chunk: list[U], was: Future[list[Any]]) -> Future[list[Any]]:
    """What was done before the pool broke is not done twice."""
    if was.done() and not was.cancelled() and was.exception() is None:
        return was
    return pool.submit(_do, chunk)


def _alone(work: Work[U, R], chunk: Sequence[U], method: str) -> Iterator[R]:
    """Each unit in a process of its own."""
    for unit in chunk:
        for left in range(TRIES - 1, -1, -1):
            pool = _pool(work, 1, method)
            try:
                yield from pool.submit(_do, [unit]).result()
                break
            except BrokenProcessPool:
                if not left:
                    raise WorkerLost(f"{unit} kills the process that does it, {TRIES} times in {TRIES}") from None
            finally:
                _end(pool)


def _pool(work: Work[Any, Any], jobs: int, method: str) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(
        jobs, mp_context=multiprocessing.get_context(method), initializer=_open, initargs=(work,)
    )


def _end(pool: ProcessPoolExecutor) -> None:
    """At once: what its workers are at is of no use to anybody any more."""
    processes = list((pool._processes or {}).values())
    pool.shutdown(wait=False, cancel_futures=True)
    for process in processes:
        process.terminate()
    for process in processes:
        process.join()


# In a worker.

_stack = ExitStack()
_doing: list[Callable[[Any], Any]] = []


def _open(work: Work[Any, Any]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever handed out the work
    _doing[:] = [_stack.enter_context(work.opened())]


def _do(chunk: Sequence[Any]) -> list[Any]:
    return [_doing[0](unit) for unit in chunk]
