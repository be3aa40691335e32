"""The executors: they run trials one after the other in this process, or in parallel processes, and return the results
in order.

If a worker dies, its trials are run again, one at a time, so that the trial that kills its process is found.
"""

from __future__ import annotations

import itertools
import multiprocessing
import multiprocessing.connection
import os
import pickle
import signal
import threading
import traceback
from collections import deque
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from chaoslab.base.clock import system
from chaoslab.base.interrupts import SIGNALS, check_late
from chaoslab.execution.spec import Executor, Work

S = TypeVar("S")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
TellNews = Callable[[], AbstractContextManager[object]]

CHUNK_MAX = 25
"""The most trials given to a worker at once. Sending them one by one would cost more than small trials take."""
AHEAD = 3
"""Chunks given to each worker in advance, so that it never waits."""
LOOK_S = 1.0
"""Seconds between two looks for trials that take too long."""
TRIES = 2
"""The number of times that a trial may kill a worker with nothing else to do."""


class WorkerLost(Exception):
    """A trial killed every worker that it was given to."""


class NotPicklable(TypeError):
    """The work cannot be sent to another process; the message gives the reason and a remedy."""

    @classmethod
    def of(cls, error: Exception) -> NotPicklable:
        return cls(
            f"other processes cannot be given this ({error}): where they are not forked, as from a notebook or any "
            "other process with threads, functions have to stand at the top level of a module; move them into one, "
            "or take jobs=1"
        )


def executor(
    jobs: int,
    *,
    tell: Callable[[str], None] = lambda _: None,
    heard: TellNews = nullcontext,
    chunk_max: int = CHUNK_MAX,
) -> Executor:
    """An executor with `jobs` processes; 1 is this process. `tell`, `heard`, `chunk_max`: see the executors. Several
    are those of `use_executor`, within it."""
    if jobs > 1 and (other_executor := child_executor(None, heard)) is not None:
        return other_executor
    return InProcess(heard) if jobs <= 1 else Processes(jobs, tell=tell, heard=heard, chunk_max=chunk_max)


ExecutorFactory = Callable[[float | None, TellNews], Executor]
"""Makes an executor on other processes than this one's children, with the limit of a trial in seconds."""
_executor_factory: ContextVar[ExecutorFactory | None] = ContextVar("spread", default=None)


@contextmanager
def use_executor(elsewhere: ExecutorFactory) -> Iterator[None]:
    """A context in which what asks for several processes gets this executor."""
    before = _executor_factory.set(elsewhere)
    try:
        yield
    finally:
        _executor_factory.reset(before)


def child_executor(limit_s: float | None, heard: TellNews) -> Executor | None:
    """The executor of `use_executor`; None outside of it."""
    make_executor = _executor_factory.get()
    return None if make_executor is None else make_executor(limit_s, heard)


@dataclass(frozen=True)
class InProcess:
    """An executor in this process. A trial begins only after the result of the last was taken. `heard` is entered
    before each trial: an interrupt does no harm there."""

    heard: TellNews = nullcontext

    def map(self, work: Work[S, R], specs: Iterable[S]) -> Generator[R, None, None]:
        with work.opened() as do:
            for spec in specs:
                with self.heard():
                    pass
                yield do(spec)


class KeptOpen:
    """An executor in this process for trials that are asked for one at a time: it leaves their work open until `close`.
    To open it takes about as long as a trial, since every place of a function that is swapped is looked for."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._work: object = None
        self._do: Callable[[Any], Any] | None = None

    def map(self, work: Work[S, R], specs: Iterable[S]) -> Generator[R, None, None]:
        for spec in specs:
            if self._do is None or self._work is not work:
                self.close()
                self._do, self._work = self._stack.enter_context(work.opened()), work
            try:
                result = self._do(spec)
            except BaseException:
                self.close()
                raise
            yield result

    def close(self) -> None:
        """Closes the work that is open."""
        self._work = self._do = None
        self._stack.close()


@dataclass(frozen=True)
class Processes:
    """An executor with parallel processes.

    `method`: the start method (fork, spawn, forkserver). By default it is fork where possible, since forked workers
    need not load everything again. `tell` is called with a line if a worker died. `heard` surrounds each wait: an
    interrupt does no harm there, and results that are ready are still yielded before it is raised. `chunk_max`: the
    most units that one process is handed at once. `limit_s`: the most seconds of real time for a trial; a process that
    takes longer is killed. `alone`: does the trials that were in hand, one at a time, when a process has died. `kept`:
    keeps the processes for the next call with the same work.
    """

    jobs: int
    method: str | None = None
    tell: Callable[[str], None] = lambda _: None
    heard: TellNews = nullcontext
    chunk_max: int = CHUNK_MAX
    limit_s: float | None = None
    alone: Executor | None = None
    kept: KeptWorkers | None = None

    def map(self, work: Work[S, R], specs: Iterable[S]) -> Generator[R, None, None]:
        """See `Executor.map`. All specs are read before anything is done. Raises WorkerLost: a trial, named in the
        message, kills its workers; the results before it have been yielded. NotPicklable: the processes are not forked,
        and the work cannot be pickled."""
        todo: Sequence[S] = list(specs)
        jobs = self.jobs if self.kept else max(1, min(self.jobs, len(todo)))
        even_share = len(todo) // (jobs * 4)
        size = max(1, min(self.chunk_max, even_share))
        waiting = deque(todo[begin : begin + size] for begin in range(0, len(todo), size))
        in_hand: deque[tuple[Sequence[S], Future[ChunkResult[R]] | None]] = (
            deque()
        )  # without a future: to be run one at a time
        opened_workers = self.kept.of(work, jobs, waiting, in_hand) if self.kept else _Workers(work, jobs, self.method)
        with opened_workers as workers, _Workers(work, 1, workers.method) as lone:
            while waiting or in_hand:
                while waiting and len(in_hand) < jobs * (1 + AHEAD):
                    chunk = waiting.popleft()
                    in_hand.append((chunk, workers.give(chunk)))
                chunk, future = in_hand[0]
                # Its worker died: one at a time, so that the trial that kills its process is found.
                if future is None:
                    in_hand.popleft()
                    yield from self.alone.map(work, chunk) if self.alone else self._one_at_a_time(lone, work, chunk)
                    continue
                try:
                    with self.heard():
                        chunk_result = self._result(future, workers)
                except BrokenProcessPool:
                    workers.end()
                    with self.heard():
                        check_late()
                    self._begin_again(workers, in_hand, jobs)
                    continue
                except KeyboardInterrupt:
                    workers.end()
                    for _, future in itertools.takewhile(lambda entry: _has_result(entry[1]), in_hand):
                        yield from future.result().done if future else ()
                    raise
                in_hand.popleft()
                yield from chunk_result.of_it()

    def _result(self, future: Future[ChunkResult[R]], workers: _Workers[S, R]) -> ChunkResult[R]:
        """The result of the future, while no process takes too long for a trial."""
        while True:
            try:
                return future.result(None if self.limit_s is None else min(LOOK_S, self.limit_s))
            except TimeoutError:
                if self.limit_s is not None:
                    workers.kill_late(self.limit_s)

    def _begin_again(
        self, workers: _Workers[S, R], out: deque[tuple[Sequence[S], Future[ChunkResult[R]] | None]], jobs: int
    ) -> None:
        """After a worker died, marks the trials in hand to be run one at a time, and gives out the other chunks
        again."""
        lost = list(
            itertools.islice((n for n, (_, future_before) in enumerate(out) if not _has_result(future_before)), jobs)
        )
        count = sum(len(out[n][0]) for n in lost)
        self.tell(f"a worker died: the {count} trials that were in hand are done again, one at a time")
        for n, (chunk, future_before) in enumerate(out):
            if n in lost:  # chunks are given out in order, so the trial that kills is among these
                out[n] = chunk, None
            elif not _has_result(future_before):
                out[n] = chunk, workers.give(chunk)

    def _one_at_a_time(self, lone: _Workers[S, R], work: Work[S, R], chunk: Sequence[S]) -> Iterator[R]:
        for spec in chunk:
            for tries_left in range(TRIES - 1, -1, -1):
                future = lone.give([spec])
                try:
                    with self.heard():
                        chunk_result = future.result()
                except BrokenProcessPool:
                    lone.end()
                    if not tries_left:
                        name = work.named(spec)
                        raise WorkerLost(f"{name} kills the process that does it, {TRIES} times in {TRIES}") from None
                else:
                    yield from chunk_result.of_it()
                    break


def _default_method() -> str:
    """The start method. A fork copies only the calling thread, so it is not used if there are others."""
    may_fork = "fork" in multiprocessing.get_all_start_methods() and threading.active_count() == 1
    return "fork" if may_fork else "spawn"


def _has_result(future: Future[Any] | None) -> bool:
    """True if it is done and has a result."""
    return future is not None and future.done() and not future.cancelled() and future.exception() is None


class _Workers(Generic[S, R]):
    """Worker processes. They are started when there is work, killed at once by `end`, and started again on demand."""

    def __init__(self, work: Work[S, R], jobs: int, method: str | None) -> None:
        self.method = method or _default_method()
        self._jobs, self._context = jobs, multiprocessing.get_context(self.method)
        # A fork inherits the work, which then need not be picklable.
        self._sent = work if self.method == "fork" else pack_work(work)
        self._pool: ProcessPoolExecutor | None = None
        self._beats = _Beats(self._context, jobs)

    def give(self, chunk: Sequence[S]) -> Future[ChunkResult[R]]:
        """The future result of the chunk. BrokenProcessPool is only ever raised by the future."""
        if self._pool is None:
            self._beats = _Beats(self._context, self._jobs)
            self._pool = ProcessPoolExecutor(
                self._jobs, mp_context=self._context, initializer=_open_worker, initargs=(self._sent, self._beats)
            )
        # A new process ignores Ctrl-C only after its first steps, and a thread of the pool could take the signal from
        # this one.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        try:
            return self._pool.submit(_run_in_worker, chunk)
        except BrokenProcessPool as error:
            broken: Future[ChunkResult[R]] = Future()
            broken.set_exception(error)
            return broken
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def kill_late(self, limit_s: float) -> None:
        """Kills each process whose trial takes longer."""
        for pid in self._beats.late(limit_s):
            os.kill(pid, signal.SIGKILL)

    def end(self) -> None:
        """Kills the processes at once: nobody needs their work any more."""
        pool, self._pool = self._pool, None
        if pool is not None:
            for process in list((pool._processes or {}).values()):
                process.kill()
            # Else the pool's thread waits for ever for the rest of what one of them was sending.
            pool._result_queue._writer.close()  # type: ignore[attr-defined]
            pool.shutdown(cancel_futures=True)

    def __enter__(self) -> _Workers[S, R]:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


class KeptWorkers:
    """The processes of `Processes`, from one of its calls to the next with the same work, until `close`. A call that is
    broken off ends them, since nobody takes the rest of what they were given."""

    def __init__(self) -> None:
        self._work: object = None
        self._workers: _Workers[Any, Any] | None = None

    @contextmanager
    def of(self, work: Work[S, R], jobs: int, *unfinished: Collection[object]) -> Iterator[_Workers[S, R]]:
        """A context with the processes of the work. `unfinished`: they hold something if it is broken off."""
        if self._workers is None or self._work is not work:
            self.close()
            self._work, self._workers = work, _Workers(work, jobs, None)
        try:
            yield self._workers
        finally:
            if any(unfinished):
                self.close()

    def close(self) -> None:
        """Ends the processes."""
        self._work, workers, self._workers = None, self._workers, None
        if workers is not None:
            workers.end()


class _Beats:
    """The moment at which each process began its trial, in memory that all share. The process's id is 0 in a place that
    none has taken, the moment in one that rests."""

    def __init__(self, context: Any, jobs: int) -> None:
        self._lock, self._pids, self._began = context.Lock(), context.RawArray("q", jobs), context.RawArray("d", jobs)
        self._own = 0

    def take(self) -> None:
        """Takes a place for this process."""
        with self._lock:
            self._own = list(self._pids).index(0)
            self._pids[self._own] = os.getpid()

    def begin(self) -> None:
        self._began[self._own] = system.monotonic()

    def end(self) -> None:
        self._began[self._own] = 0.0

    def late(self, limit_s: float) -> list[int]:
        now = system.monotonic()
        return [
            pid for pid, begin_s in zip(self._pids, self._began, strict=True) if begin_s and now - begin_s > limit_s
        ]


UNSENT = (
    "what came of it cannot be sent from one process to another ({}): take jobs=1 and no isolate=, or have it answered "
    "in plain data"
)


def pack_work(work: Work[Any, Any]) -> bytes:
    """The work as bytes, since a process that cannot unpickle its arguments dies silently."""
    try:
        return pickle.dumps(work)
    except Exception as error:  # an object's own code may raise anything
        raise NotPicklable.of(error) from error


@dataclass(frozen=True)
class ChunkResult(Generic[R_co]):
    """The results of a chunk, up to the trial that failed, if one did. They travel as bytes and are unpickled here,
    since the pool mistakes an error in unpickling for a dead worker."""

    sent: bytes
    error: BaseException | None = None

    @classmethod
    def of(cls, chunk_items: list[Any], error: BaseException | None = None) -> ChunkResult[Any]:
        try:
            return cls(pickle.dumps(chunk_items), error)
        except Exception as unsent:  # noqa: BLE001 - an object's own code may raise anything
            return cls(pickle.dumps([]), NotPicklable(UNSENT.format(unsent)))

    @property
    def done(self) -> list[R_co]:
        try:
            chunk_items: list[R_co] = pickle.loads(self.sent)
        except Exception as error:
            raise NotPicklable(UNSENT.format(error)) from error
        return chunk_items

    def of_it(self) -> Iterator[R_co]:
        yield from self.done
        if self.error is not None:
            raise self.error


# In a worker process.


class _Worker:
    """A worker process's work, which stays open until the process ends. If it cannot be opened, each trial raises the
    error, for the parent."""

    def __init__(self, sent: Work[Any, Any] | bytes, beats: _Beats) -> None:
        self._stack, self.beats = ExitStack(), beats
        beats.take()
        try:
            self.do = self._stack.enter_context(unpack_work(sent).opened())
        except BaseException as error:  # noqa: BLE001 - it is raised again in the parent
            self.do = _make_raiser(error)


_worker: ContextVar[_Worker] = ContextVar("worker")
"""Set by `_open_worker`; the pool calls `_run_in_worker` in the same context."""


def _open_worker(sent: Work[Any, Any] | bytes, beats: _Beats) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    # A worker must not outlive a parent that was killed.
    threading.Thread(target=_end_with_parent, name="lifeline", daemon=True).start()
    _worker.set(_Worker(sent, beats))


def unpack_work(sent: Work[Any, Any] | bytes) -> Work[Any, Any]:
    """The work of `pack_work`. Raises NotPicklable: it cannot be made here, as where a module is missing."""
    if not isinstance(sent, bytes):
        return sent
    try:
        work: Work[Any, Any] = pickle.loads(sent)
    except Exception as error:  # an object's own code may raise anything
        raise NotPicklable.of(error) from error
    return work


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        multiprocessing.connection.wait([parent.sentinel])
        os._exit(1)


def _make_raiser(error: BaseException) -> Callable[[Any], Any]:
    def do(_: Any) -> Any:
        raise error

    return do


def _run_in_worker(chunk: Sequence[Any]) -> ChunkResult[Any]:
    worker = _worker.get()

    def do(spec: Any) -> Any:
        worker.beats.begin()
        try:
            return worker.do(spec)
        finally:
            worker.beats.end()

    return run_chunk(do, chunk)


def run_chunk(do: Callable[[S], R], chunk: Sequence[S]) -> ChunkResult[R]:
    """The results of a chunk, sent as one: what they have in common is pickled once."""
    chunk_items: list[R] = []
    for spec in chunk:
        try:
            chunk_items.append(do(spec))
        except BaseException as error:  # noqa: BLE001 - it is raised again in the parent
            return ChunkResult.of(chunk_items, with_traceback_note(error))
    return ChunkResult.of(chunk_items)


def with_traceback_note(error: BaseException) -> BaseException:
    """The error, with a note of its traceback."""
    traceback_text = "".join(traceback.format_exception(error)).rstrip()
    portable_error = make_portable(error, traceback_text)
    if portable_error is error:
        error.add_note(f"in a worker:\n{traceback_text}")
    return portable_error


def make_portable(error: BaseException, otherwise: str) -> BaseException:
    """The error itself if another process can unpickle it, else a RuntimeError with the text `otherwise`."""
    try:
        if type(pickle.loads(pickle.dumps(error))) is type(error):
            return error
    except Exception:  # noqa: BLE001 - an exception's own code may raise anything
        pass
    return RuntimeError(otherwise)
