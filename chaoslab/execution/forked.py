"""Trials in a child process, which is a copy of this one. An end of the child is no end of this process, and a trial
that does not end is ended from here. The stack of one that crashed is read through a pipe: a handler of the signal in C
writes it."""

import faulthandler
import importlib
import os
import pickle
import re
import select
import signal
import struct
import sys
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from itertools import groupby, islice
from pathlib import Path
from typing import Any, Generic, NoReturn, TypeVar

from chaoslab.base.interrupts import SIGNALS, check_late
from chaoslab.execution.spec import Executor, Work
from chaoslab.execution.workers import (
    TRIES,
    ChunkResult,
    InProcess,
    KeptWorkers,
    Processes,
    TellNews,
    WorkerLost,
    child_executor,
    executor,
    with_traceback_note,
)

STATM = Path("/proc/self/statm")
"""The memory of this process, in pages; the first number is the size of its addresses."""
S = TypeVar("S")
R = TypeVar("R")
OpenWork = Callable[[], AbstractContextManager[Callable[[S], R]]]
HEAD = struct.Struct("!Q")
"""Stands before each result on its way: the number of bytes that follow."""
AHEAD = 64
"""The trials that a child is handed at once, so that it need not wait for the process that writes them down."""


def can_fork() -> bool:
    """Tells if this platform has `os.fork`."""
    return hasattr(os, "fork")


class TooLong(Exception):
    """The child's work did not end within its limit of real time; the message has the stack where it was."""


class Died(Exception):
    """The child ended before its work did; the message has its ending. `status`: as `os.waitpid` tells it."""

    def __init__(self, status: int, places: str) -> None:
        super().__init__(f"{describe_exit(status)}{places}".replace("\n", "; "))
        self.status = status

    def check(self) -> None:
        """Raises KeyboardInterrupt if a signal from outside has ended the child, as it ends this process too."""
        if os.WIFSIGNALED(self.status) and os.WTERMSIG(self.status) in SIGNALS:
            check_late()


class Child(Generic[S, R]):
    """A child process that does what it is given, one after the other. It ends with this process, also at kill -9."""

    def __init__(self, opened: OpenWork[S, R]) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        # Both streams were flushed first: the child would write its copy of the buffers once more.
        self._stack = Stack()
        asked_end, self._requests_fd = os.pipe()
        self._came, came_end = os.pipe()
        # Nobody writes into it: the system signals the child when this process, its only holder, is gone.
        lifeline, self._held = os.pipe()
        self._got = bytearray()
        # Blocked until the child has handlers of its own: this process's would run in the copy.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        try:
            with warnings.catch_warnings():  # other threads do not go along, and no trial waits for them
                warnings.simplefilter("ignore", DeprecationWarning)
                self._pid = os.fork()
            if self._pid == 0:
                for end in (self._requests_fd, self._came, self._held):
                    os.close(end)
                _serve(opened, asked_end, came_end, lifeline, self._stack)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        for end in (asked_end, came_end, lifeline):
            os.close(end)
        self._stack.of_child()
        self._poll = select.poll()
        self._poll.register(self._came, select.POLLIN)

    def give(self, spec: S) -> None:
        with suppress(BrokenPipeError):  # `result` tells why
            os.write(self._requests_fd, pickle.dumps(spec))

    def result(self, limit_s: float | None = None) -> tuple[ChunkResult[R], Iterable[str]]:
        """The next result, with the modules that were imported for it. `limit_s`: the most seconds of real time that it
        may take from now on. Raises TooLong: it took longer. Died: the child is gone. Both end it."""
        while True:
            if len(self._got) >= HEAD.size:
                end = HEAD.size + HEAD.unpack_from(self._got)[0]
                if len(self._got) >= end:
                    message: tuple[ChunkResult[R], Iterable[str]] = pickle.loads(self._got[HEAD.size : end])
                    del self._got[:end]
                    return message
            if not self._poll.poll(None if limit_s is None else limit_s * 1000):
                # SIGABRT and not SIGKILL: its handler in C writes the stack that the message tells.
                os.kill(self._pid, signal.SIGABRT)
                raise TooLong(f"it had not ended after {limit_s:g} s of real time{self._stack.places()}")
            received = os.read(self._came, 1 << 20)
            if not received:
                places = self._stack.places()
                raise Died(self._reap(), places)
            self._got += received

    def end(self) -> None:
        """Ends the child at once."""
        with suppress(ProcessLookupError):
            if self._pid:
                os.kill(self._pid, signal.SIGKILL)
        self._reap()

    def _reap(self) -> int:
        if not self._pid:
            return 0
        pid, self._pid = self._pid, 0
        _, status = os.waitpid(pid, 0)
        for end in (self._requests_fd, self._came, self._held):
            os.close(end)
        self._stack.close()
        return status

    def __enter__(self) -> "Child[S, R]":
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


def can_limit_memory() -> bool:
    """Tells if a process can be given a limit of its memory here, and can tell how much it has."""
    return STATM.exists()


@contextmanager
def limit_memory(memory_mb: int | None) -> Iterator[None]:
    """A context in which this process may take so many MiB more of memory than it has."""
    if memory_mb is None:
        yield
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    current = int(STATM.read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    limit = current + memory_mb * 1024 * 1024
    resource.setrlimit(resource.RLIMIT_AS, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def wrap_in_child(
    do: Callable[[S], R], named: Callable[[S], str], limit_s: float | None = None, *, memory_mb: int | None = None
) -> Callable[[S], R]:
    """`do` in a child process for each call. Modules that a child has imported are imported here too, so that the next
    need not load them again. `named`: the name of a trial, for messages. `limit_s`: see `Child.result`. `memory_mb`: as
    in `limit_memory`.

    Raises (when called):
        WorkerLost: the child ended without a result, and the spec cannot say so.
        NotPicklable: the result cannot be sent from one process to another.
    """

    def within(spec: S) -> R:
        with limit_memory(memory_mb):
            return do(spec)

    def call(spec: S) -> R:
        with Child[S, R](lambda: nullcontext(within)) as child:
            child.give(spec)
            try:
                chunk_result, imported = child.result(limit_s)
            except TooLong as late:
                return do(_mark_stopped(spec, late, named))
            except Died as died:
                died.check()
                if getattr(spec, "crashed", None) != "":
                    raise WorkerLost(f"{named(spec)} kills the process that does it ({died})") from None
                crashed: S = replace(spec, crashed=f"it ended its process ({died})")  # type: ignore[type-var]
                return do(crashed)
        for name in imported:
            with suppress(Exception):  # a module made at run time, or one that is imported once only
                importlib.import_module(name)
        (result,) = chunk_result.of_it()
        return result

    return call


@dataclass(frozen=True)
class InChild:
    """An executor in one child process.

    `limit_s`: the most seconds of real time for a trial; one that takes longer ends as hung, and the others go on in a
    new child. `ahead`: the trials that the child has at once; with 1 a trial begins only after the result of the last
    was taken. `heard`: see `Processes`. `tries`: the times that a trial may kill a child.
    """

    limit_s: float | None = None
    ahead: int = 1
    heard: TellNews = nullcontext
    tries: int = 1

    def map(self, work: Work[S, R], specs: Iterable[S]) -> Generator[R, None, None]:
        """See `Executor.map`. Raises WorkerLost, NotPicklable: as `each`."""
        with closing(self.each(work, specs)) as chunk_results:
            for chunk_result in chunk_results:
                yield from chunk_result.of_it()

    def each(self, work: Work[S, R], specs: Iterable[S | None]) -> Generator[ChunkResult[R], None, None]:
        """The results of `map` as the bytes that came, for whoever passes them on. A None in `specs` says that no more
        are there for the moment. Raises WorkerLost: the child ended before the trial that the message names;
        NotPicklable: a result cannot be sent from one process to another."""
        coming, in_hand = iter(specs), deque[S]()
        child: Child[S, R] | None = None
        killed = 0
        try:
            while True:
                new_specs = [*_take_until_none(islice(coming, self.ahead - len(in_hand)))]
                in_hand += new_specs
                if not in_hand:
                    return
                if child is None:
                    child, new_specs = Child(work.opened), list(in_hand)
                for spec in new_specs:
                    child.give(spec)
                try:
                    with self.heard():
                        chunk_result, _ = child.result(self.limit_s)
                except TooLong as late:
                    child.end()
                    child, in_hand[0] = None, _mark_stopped(in_hand[0], late, work.named)
                    continue
                except Died as died:
                    with self.heard():
                        died.check()
                    killed += 1
                    if killed < self.tries:
                        child = None
                        continue
                    times = "" if self.tries == 1 else f", {killed} times in {self.tries}"
                    raise WorkerLost(
                        f"{work.named(in_hand[0])} kills the process that does it{times} ({died})"
                    ) from None
                in_hand.popleft()
                killed = 0
                yield chunk_result
        finally:
            if child is not None:
                child.end()


class KeptChild:
    """An executor in one child process, which goes on with the next trials of the same work until `close`: to copy this
    process and to open the work may take longer than a trial. A call that is broken off ends it, since nobody takes the
    rest of what it was given. `limit_s`: see `InChild`."""

    def __init__(self, limit_s: float | None) -> None:
        self._limit_s, self._todo = limit_s, deque[Any]()
        self._work: object = None
        self._done: Generator[ChunkResult[Any], None, None] | None = None

    def map(self, work: Work[S, R], specs: Iterable[S]) -> Generator[R, None, None]:
        """See `Executor.map`. Raises WorkerLost, NotPicklable: as `InChild.each`."""
        if self._done is None or self._work is not work:
            self.close()
            self._work, self._done = work, InChild(self._limit_s, AHEAD).each(work, self._coming())
        todo = [*specs]
        self._todo += todo
        remaining = len(todo)
        try:
            while remaining:
                chunk_result = next(self._done)
                remaining -= 1
                yield from chunk_result.of_it()
        finally:
            if remaining:
                self.close()

    def _coming(self) -> Iterator[Any]:
        while True:
            yield self._todo.popleft() if self._todo else None

    def close(self) -> None:
        """Ends the child."""
        self._work, generator, self._done = None, self._done, None
        self._todo.clear()
        if generator is not None:
            generator.close()


def _take_until_none(specs: Iterable[S | None]) -> Iterator[S]:
    """The specs up to a None."""
    for spec in specs:
        if spec is None:
            return
        yield spec


def make_child_executor(
    jobs: int, limit_s: float, *, at_once: bool, heard: TellNews = nullcontext,
    tell: Callable[[str], None] = lambda _: None,
) -> Executor:  # fmt: skip
    """The executor in so many child processes, or in this process where there is none. `at_once`: with one child a
    trial begins only after the result of the last was taken, as it has to where a trial acts on the real world or
    counts on those before it. `heard`, `tell`: see `Processes`."""
    if jobs > 1 and (other_executor := child_executor(limit_s, heard)) is not None:
        return other_executor
    if not can_fork():
        return executor(jobs, tell=tell, heard=heard)
    if jobs > 1:
        return Processes(
            jobs, tell=tell, heard=heard, limit_s=limit_s, alone=InChild(limit_s, heard=heard, tries=TRIES)
        )
    return InChild(limit_s, 1 if at_once else AHEAD, heard)


@contextmanager
def keep_executors(jobs: int, limit_s: float | None) -> Iterator[tuple[Executor, Executor]]:
    """A context with an executor in so many processes, and one for a trial that nothing can run beside, whose processes
    stay for the next call with the same work. `limit_s`: as in `make_child_executor`; None: with one job trials run
    in this process."""
    other_executor = child_executor(limit_s, nullcontext) if jobs > 1 else None
    in_child = limit_s is not None and can_fork()
    if jobs > 1 and other_executor is None:
        single = InChild(limit_s, tries=TRIES) if in_child else None
        with closing(KeptWorkers()) as kept_workers:
            pool = Processes(jobs, limit_s=limit_s if in_child else None, alone=single, kept=kept_workers)
            yield pool, pool
        return
    alone: Executor
    with closing(KeptChild(limit_s)) if in_child else nullcontext(InProcess()) as alone:
        yield other_executor or alone, alone


def _mark_stopped(spec: S, late: TooLong, named: Callable[[S], str]) -> S:
    """The trial as one that is not run again, but told to have hung, if its spec can say so."""
    if getattr(spec, "stopped", None) != "":
        raise WorkerLost(f"{named(spec)}: {late}") from None
    stopped: S = replace(spec, stopped=str(late))  # type: ignore[type-var]
    return stopped


def describe_exit(status: int) -> str:
    code = os.waitstatus_to_exitcode(status)
    return f"exit code {code}" if code >= 0 else signal.Signals(-code).name


# In the child process.


def _serve(opened: OpenWork[Any, Any], asked_end: int, came_end: int, lifeline: int, stack: "Stack") -> NoReturn:
    """Does what it is given, and ends the process, whatever happens."""
    code = 1
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends this process
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        end_with_writer(lifeline)
        stack.of_this_process()
        with os.fdopen(asked_end, "rb") as requests, os.fdopen(came_end, "wb") as replies:
            for message in _run_specs(opened, requests):
                with suppress(OSError, ValueError):  # the program's own streams
                    sys.stdout.flush()
                    sys.stderr.flush()
                replies.write(HEAD.pack(len(message)))
                replies.write(message)
                replies.flush()
        code = 0
    finally:
        # Not sys.exit: exit handlers and open files are the parent's.
        os._exit(code)


def _run_specs(opened: OpenWork[Any, Any], requests: Any) -> Iterator[bytes]:
    """The results, each as bytes with the modules that were imported for it."""
    module_count = len(sys.modules)
    try:
        with opened() as do:
            while True:
                spec = pickle.load(requests)
                try:
                    chunk_result: ChunkResult[Any] = ChunkResult.of([do(spec)])
                except BaseException as error:  # noqa: BLE001 - it is raised again in the parent
                    chunk_result = ChunkResult.of([], with_traceback_note(error))
                # The last ones alone: to look at every name would copy the page of each.
                imported = [*islice(reversed(sys.modules), max(0, len(sys.modules) - module_count))][::-1]
                module_count = len(sys.modules)
                yield pickle.dumps((chunk_result, imported))
    except EOFError:
        return
    except BaseException as error:  # noqa: BLE001 - as above
        yield pickle.dumps((ChunkResult.of([], with_traceback_note(error)), ()))


def end_with_writer(read_end: int) -> None:
    """Has the system end this process when nobody holds the other end of a pipe any more, into which nobody writes. A
    thread would need its turn, which a loop in C does not give."""
    import fcntl

    fcntl.fcntl(read_end, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(read_end, fcntl.F_SETFL, fcntl.fcntl(read_end, fcntl.F_GETFL) | os.O_ASYNC)


SILENT_S = 2.0
"""Seconds after which a stack that does not go on is whole."""
SHOWN = 8
"""The most places of a stack that a message has, the innermost first, each once in a row."""
_PLACE = re.compile(r'^  File "(.*)", line (\d+) in (.+)$', re.MULTILINE)
_OWN = f"{Path(__file__).parents[1]}/"


class Stack:
    """The pipe, made before the fork. Each of the two processes calls its own method after it."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe()

    def of_this_process(self) -> None:
        """In the child: has a crash written into the pipe, and no file of its memory."""
        import resource

        os.close(self._read)
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        faulthandler.enable(self._write, all_threads=False)

    def of_child(self) -> None:
        """In the parent."""
        os.close(self._write)

    def places(self) -> str:
        """The stack of a child that ends, as in ": ag.py:3 in spin", with a line for each further place. Empty if the
        child wrote none."""
        poll, text = select.poll(), b""
        poll.register(self._read, select.POLLIN)
        while poll.poll(SILENT_S * 1000) and (received := os.read(self._read, 1 << 16)):
            text += received
        frames = _PLACE.findall(text.decode("utf-8", "replace"))
        user_places = [
            f"{Path(file).name}:{number} in {name}" for file, number, name in frames if not file.startswith(_OWN)
        ]
        return ": " + "\n".join([location for location, _ in groupby(user_places)][:SHOWN]) if user_places else ""

    def close(self) -> None:
        os.close(self._read)
