"""Trials in child processes, which are copies of this one, and their results in order. An end of a child is no end of
this process, and a trial that does not end is ended from here. The stack of one that crashed is read through a pipe: a
handler of the signal in C writes it."""

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
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from itertools import groupby, islice
from operator import length_hint
from pathlib import Path
from typing import Any, Generic, NoReturn, TypeVar

from chaoslab.base.clock import system
from chaoslab.base.interrupts import SIGNALS, wait_and_check_interrupt
from chaoslab.execution.spec import Executor, Work
from chaoslab.execution.workers import (
    ChunkResult,
    InProcessExecutor,
    TellNews,
    WorkerLost,
    add_traceback_note,
    make_configured_executor,
)

STATM = Path("/proc/self/statm")
"""The memory of this process, in pages; the first number is the size of its addresses."""
S = TypeVar("S")
R = TypeVar("R")
Message = tuple[ChunkResult[R], Sequence[str]]
"""A result, with the modules that were imported for it."""
OpenWork = Callable[[], AbstractContextManager[Callable[[S], R]]]
HEAD = struct.Struct("!Q")
"""Stands before each result on its way: the number of bytes that follow."""
AHEAD = 64
"""The trials that a child is handed at once, so that it need not wait for the process that writes them down."""
UNREAD_MAX = 16 << 10
"""The bytes of trials after which a child is given no more until it sends a result. A pipe takes at least 64 KiB: one
that is full would hold up this process, and so the child, whose results it has to take."""
TRIES = 2
"""The number of times that a trial of several processes may kill its own. One alone has one try: it may act on the real
world."""
_PARENT_ENDS = set[int]()
"""The ends of pipes that this process has of all its children. A further child closes its copies, which would keep its
siblings from ending with this process."""


def can_fork() -> bool:
    """Tells if this platform has `os.fork`."""
    return hasattr(os, "fork")


class TooLong(Exception):
    """The child's work did not end within its limit of real time; the message has the stack where it was."""


class ChildDied(Exception):
    """The child ended before its work did; the message has its ending. `status`: as `os.waitpid` tells it."""

    def __init__(self, status: int, places: str) -> None:
        super().__init__(f"{describe_exit_status(status)}{places}".replace("\n", "; "))
        self.status = status

    def raise_if_interrupted(self) -> None:
        """Raises KeyboardInterrupt if a signal from outside has ended the child, as it ends this process too."""
        if os.WIFSIGNALED(self.status) and os.WTERMSIG(self.status) in SIGNALS:
            wait_and_check_interrupt()


class Child(Generic[S, R]):
    """A child process that does what it is given, one after the other. It ends with this process, also at kill -9."""

    def __init__(self, opened: OpenWork[S, R]) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        # Both streams were flushed first: the child would write its copy of the buffers once more.
        self._stack = CrashStackPipe()
        asked_end, self._requests_fd = os.pipe()
        self.results_fd, came_end = os.pipe()
        # Nobody writes into it: the system signals the child when this process, its only holder, is gone.
        lifeline, self._held = os.pipe()
        self._received, self._results = bytearray(), deque[Message[R]]()
        self.unread, self._sizes = 0, deque[int]()
        _PARENT_ENDS.update(own_ends := (self._requests_fd, self.results_fd, self._held))
        self._own_ends = own_ends
        # Blocked until the child has handlers of its own: this process's would run in the copy.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        try:
            with warnings.catch_warnings():  # other threads do not go along, and no trial waits for them
                warnings.simplefilter("ignore", DeprecationWarning)
                self._pid = os.fork()
            if self._pid == 0:
                for end in _PARENT_ENDS:
                    os.close(end)
                _PARENT_ENDS.clear()
                _run_child_loop(opened, asked_end, came_end, lifeline, self._stack)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        for end in (asked_end, came_end, lifeline):
            os.close(end)
        self._stack.set_up_in_parent()
        self._poll = select.poll()
        self._poll.register(self.results_fd, select.POLLIN)

    def send_spec(self, spec: S) -> None:
        with suppress(BrokenPipeError):  # `result` tells why
            packed = pickle.dumps(spec)
            self._sizes.append(len(packed))
            self.unread += len(packed)
            os.write(self._requests_fd, packed)

    def wait_for_result(self, limit_s: float | None = None) -> Message[R]:
        """The next result, with the modules that were imported for it. `limit_s`: the most seconds of real time that it
        may take from now on. Raises TooLong: it took longer. Died: the child is gone. Both end it."""
        while not self._results:
            if limit_s is not None and not self._poll.poll(limit_s * 1000):
                raise self.abort_hung_trial(limit_s)
            self._results += self.read_results()
        return self._results.popleft()

    def read_results(self) -> Iterator[Message[R]]:
        """The results that are whole after one more read, which waits if there is nothing. Raises Died: the child is
        gone."""
        received = os.read(self.results_fd, 1 << 20)
        if not received:
            places = self._stack.read_crash_places()
            raise ChildDied(self._wait_for_exit(), places)
        self._received += received
        while len(self._received) >= HEAD.size:
            end = HEAD.size + HEAD.unpack_from(self._received)[0]
            if len(self._received) < end:
                return
            message: Message[R] = pickle.loads(self._received[HEAD.size : end])
            del self._received[:end]
            self.unread -= self._sizes.popleft()
            yield message

    def abort_hung_trial(self, limit_s: float) -> TooLong:
        """Ends the child, whose trial took longer, and returns the error with its stack."""
        # SIGABRT and not SIGKILL: its handler in C writes the stack that the message tells.
        os.kill(self._pid, signal.SIGABRT)
        late = TooLong(f"it had not ended after {limit_s:g} s of real time{self._stack.read_crash_places()}")
        self.kill_and_reap()
        return late

    def kill_and_reap(self) -> None:
        """Ends the child at once."""
        with suppress(ProcessLookupError):
            if self._pid:
                os.kill(self._pid, signal.SIGKILL)
        self._wait_for_exit()

    def _wait_for_exit(self) -> int:
        if not self._pid:
            return 0
        pid, self._pid = self._pid, 0
        _, status = os.waitpid(pid, 0)
        for end in self._own_ends:
            os.close(end)
        _PARENT_ENDS.difference_update(self._own_ends)
        self._stack.close()
        return status

    def __enter__(self) -> "Child[S, R]":
        return self

    def __exit__(self, *_: object) -> None:
        self.kill_and_reap()


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


def make_child_runner(
    do: Callable[[S], R], named: Callable[[S], str], limit_s: float | None = None, *, memory_mb: int | None = None
) -> Callable[[S], R]:
    """`do` in a child process for each call. Modules that a child has imported are imported here too, so that the next
    need not load them again. `named`: the name of a trial, for messages. `limit_s`: see `Child.wait_for_result`.
    `memory_mb`: as in `limit_memory`.

    Raises (when called):
        WorkerLost: the child ended without a result, and the spec cannot say so.
        NotPicklable: the result cannot be sent from one process to another.
    """

    def run_within_memory_limit(spec: S) -> R:
        with limit_memory(memory_mb):
            return do(spec)

    def run_in_child(spec: S) -> R:
        with Child[S, R](lambda: nullcontext(run_within_memory_limit)) as child:
            child.send_spec(spec)
            try:
                chunk_result, imported = child.wait_for_result(limit_s)
            except TooLong as late:
                return do(_mark_spec_stopped(spec, late, named))
            except ChildDied as died:
                died.raise_if_interrupted()
                if getattr(spec, "crashed", None) != "":
                    raise WorkerLost(f"{named(spec)} kills the process that does it ({died})") from None
                crashed: S = replace(spec, crashed=f"it ended its process ({died})")  # type: ignore[type-var]
                return do(crashed)
        for name in imported:
            with suppress(Exception):  # a module made at run time, or one that is imported once only
                importlib.import_module(name)
        (result,) = chunk_result.iterate_results()
        return result

    return run_in_child


@dataclass
class _Task(Generic[S, R]):
    """A trial that was given out, and what came of it. `deaths`: the number of children that it has killed."""

    spec: S
    result: ChunkResult[R] | WorkerLost | None = None
    deaths: int = 0


class _Worker(Generic[S, R]):
    """A child with the trials that it has in hand. It does them in order, so the first is the one that kills it."""

    def __init__(self, work: Work[S, R]) -> None:
        self._work, self.tasks = work, deque[_Task[S, R]]()
        self.child = Child(work.open_runner)
        self._began_s = 0.0

    @property
    def current_task_name(self) -> str:
        """The name of the trial that it does."""
        return self._work.get_work_item_name(self.tasks[0].spec)

    def has_room(self, ahead: int) -> bool:
        return len(self.tasks) < ahead and self.child.unread < UNREAD_MAX

    def give_task(self, task: _Task[S, R]) -> None:
        if not self.tasks:
            self._began_s = system.monotonic()
        self.tasks.append(task)
        self.child.send_spec(task.spec)

    def collect_results(self) -> None:
        """Takes the results that have come. Raises Died: the child is gone."""
        for chunk_result, _ in self.child.read_results():
            self.tasks.popleft().result = chunk_result
            self._began_s = system.monotonic()

    def get_seconds_left(self, limit_s: float) -> float:
        return self._began_s + limit_s - system.monotonic()

    def restart_after_hang(self, limit_s: float) -> bool:
        """Ends the first trial, which takes too long, and goes on with it as one that hung, and with the others. False:
        its spec cannot say so."""
        task, late = self.tasks[0], self.child.abort_hung_trial(limit_s)
        try:
            task.spec = _mark_spec_stopped(task.spec, late, self._work.get_work_item_name)
        except WorkerLost as lost:
            return self._give_up_tasks(lost)
        return self._restart_child()

    def restart_after_death(self, died: ChildDied, tries: int) -> bool:
        """Goes on in a new child; False if the first trial has killed so many already."""
        task = self.tasks[0]
        task.deaths += 1
        if task.deaths < tries:
            return self._restart_child()
        times = "" if tries == 1 else f", {tries} times in {tries}"
        return self._give_up_tasks(
            WorkerLost(f"{self.current_task_name} kills the process that does it{times} ({died})")
        )

    def _give_up_tasks(self, lost: WorkerLost) -> bool:
        """Gives up the first trial, and those after it, whose results nobody takes then."""
        self.tasks[0].result = lost
        self.tasks.clear()
        return False

    def _restart_child(self) -> bool:
        self.child, self._began_s = Child(self._work.open_runner), system.monotonic()
        for task in self.tasks:
            self.child.send_spec(task.spec)
        return True


@dataclass
class ChildExecutor:
    """An executor in child processes. They are forked when there is work for them.

    `limit_s`: the most seconds of real time for a trial; one that takes longer ends as hung, and the others go on in a
    new child. `ahead`: the most trials that a child has at once; with one job and 1 a trial begins only after the
    result of the last was taken. `heard` surrounds each wait: an interrupt does no harm there, and what came before has
    been yielded. `tell` is called with a line if a trial that killed its child is done again. `kept`: the children go
    on with the next trials of the same work until `close`: to copy this process and to open the work may take longer
    than a trial.
    """

    jobs: int = 1
    limit_s: float | None = None
    ahead: int = AHEAD
    heard: TellNews = nullcontext
    tell: Callable[[str], None] = lambda _: None
    kept: bool = False
    _work: object = field(default=None, init=False)
    _idle: list[_Worker[Any, Any]] = field(default_factory=list, init=False)

    def map(self, work: Work[S, R], specs: Iterable[S]) -> Generator[R, None, None]:
        """See `Executor.map`. Raises WorkerLost, NotPicklable: as `iterate_chunk_results`."""
        with closing(self.iterate_chunk_results(work, specs)) as chunk_results:
            for chunk_result in chunk_results:
                yield from chunk_result.iterate_results()

    def iterate_chunk_results(self, work: Work[S, R], specs: Iterable[S]) -> Generator[ChunkResult[R], None, None]:
        """The results of `map` as the bytes that came, for whoever passes them on. Of several jobs all specs are read
        first. Raises WorkerLost: a trial, named in the message, kills its child; the results before it have been
        yielded. NotPicklable: a result cannot be sent from one process to another."""
        coming, tasks = iter(specs if self.jobs == 1 else [*specs]), deque[_Task[S, R]]()
        if self._work is not work:
            self.close()
        workers, self._work, self._idle = self._idle, work, []
        is_complete = False
        try:
            while True:
                self._give_out_tasks(work, workers, coming, tasks)
                if not tasks:
                    is_complete = True
                    return
                if (result := tasks[0].result) is None:
                    self._collect_worker_results(workers)
                elif isinstance(result, WorkerLost):
                    raise result
                else:
                    tasks.popleft()
                    yield result
        finally:
            # A call that is broken off ends them: nobody takes the rest of what they were given.
            if is_complete and self.kept and self._work is work and not self._idle:
                self._idle = workers
            else:
                for worker in workers:
                    worker.child.kill_and_reap()

    def _give_out_tasks(
        self, work: Work[S, R], workers: list[_Worker[S, R]], coming: Iterator[S], tasks: deque[_Task[S, R]]
    ) -> None:
        """Gives out trials for as long as the children have room."""
        ahead, several = self.ahead, self.jobs > 1
        while len(tasks) < (self.ahead * self.jobs * 2 if several else ahead):
            if several:  # fewer towards the end, so that no child has many when the others are done
                ahead = max(1, min(self.ahead, length_hint(coming) // (self.jobs * 4)))
            worker = min(workers, key=lambda worker: len(worker.tasks), default=None)
            is_missing = worker is None or (worker.tasks and len(workers) < self.jobs)
            if not is_missing and worker and not worker.has_room(ahead):
                return
            try:
                task = _Task[S, R](next(coming))
            except StopIteration:
                return
            if worker is None or is_missing:
                workers.append(worker := _Worker(work))
            worker.give_task(task)
            tasks.append(task)

    def _collect_worker_results(self, workers: list[_Worker[S, R]]) -> None:
        """Waits for results and takes them, and puts new children in the place of those that died or took too long."""
        busy, poll = {worker.child.results_fd: worker for worker in workers if worker.tasks}, select.poll()
        for results_fd in busy:
            poll.register(results_fd, select.POLLIN)
        timeout_ms = None
        if self.limit_s is not None:
            timeout_ms = max(0.0, min(worker.get_seconds_left(self.limit_s) for worker in busy.values())) * 1000
        with self.heard():
            ready = poll.poll(timeout_ms)
        for results_fd, _ in ready:
            worker = busy.pop(results_fd)
            try:
                worker.collect_results()
            except ChildDied as died:
                with self.heard():
                    died.raise_if_interrupted()
                if worker.restart_after_death(died, 1 if self.jobs == 1 else TRIES):
                    self.tell(f"a worker died ({died}): {worker.current_task_name} is done again")
                else:
                    workers.remove(worker)
        for worker in busy.values():  # they had sent nothing
            if (
                self.limit_s is not None
                and worker.get_seconds_left(self.limit_s) <= 0
                and not worker.restart_after_hang(self.limit_s)
            ):
                workers.remove(worker)

    def close(self) -> None:
        """Ends the children."""
        workers, self._idle, self._work = self._idle, [], None
        for worker in workers:
            worker.child.kill_and_reap()


def make_executor(
    jobs: int,
    limit_s: float | None = None,
    *,
    at_once: bool = False,
    heard: TellNews = nullcontext,
    tell: Callable[[str], None] = lambda _: None,
) -> Executor:
    """The executor in so many child processes; with one job and no limit, or where no process can be forked, in this
    process. Several are those of `use_executor_factory`, within it. `limit_s`: the most seconds of real time for a
    trial.
    `at_once`: with one child a trial begins only after the result of the last was taken, as it has to where a trial
    acts on the real world or counts on those before it. `heard`, `tell`: see `ChildExecutor`."""
    if jobs > 1 and (other_executor := make_configured_executor(limit_s, heard)) is not None:
        return other_executor
    if not can_fork() or (jobs <= 1 and limit_s is None):
        return InProcessExecutor(heard)
    return ChildExecutor(max(1, jobs), limit_s, 1 if at_once and jobs <= 1 else AHEAD, heard, tell)


@contextmanager
def open_executors(jobs: int, limit_s: float | None) -> Iterator[tuple[Executor, Executor]]:
    """A context with an executor in so many processes, and one for a trial that nothing can run beside, whose processes
    stay for the next call with the same work. `limit_s`: as in `make_executor`."""
    other_executor = make_configured_executor(limit_s, nullcontext) if jobs > 1 else None
    own_jobs = 1 if other_executor else jobs
    if not can_fork() or (own_jobs == 1 and limit_s is None):
        yield other_executor or InProcessExecutor(), InProcessExecutor()
        return
    with closing(ChildExecutor(own_jobs, limit_s, kept=True)) as pool:
        yield other_executor or pool, pool


def _mark_spec_stopped(spec: S, late: TooLong, named: Callable[[S], str]) -> S:
    """The trial as one that is not run again, but told to have hung, if its spec can say so."""
    if getattr(spec, "stopped", None) != "":
        raise WorkerLost(f"{named(spec)}: {late}") from None
    stopped: S = replace(spec, stopped=str(late))  # type: ignore[type-var]
    return stopped


def describe_exit_status(status: int) -> str:
    code = os.waitstatus_to_exitcode(status)
    return f"exit code {code}" if code >= 0 else signal.Signals(-code).name


# In the child process.


def _run_child_loop(
    opened: OpenWork[Any, Any], asked_end: int, came_end: int, lifeline: int, stack: "CrashStackPipe"
) -> NoReturn:
    """Does what it is given, and ends the process, whatever happens."""
    code = 1
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends this process
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        end_process_when_pipe_closes(lifeline)
        stack.set_up_in_child()
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
                    chunk_result: ChunkResult[Any] = ChunkResult.build([do(spec)])
                except BaseException as error:  # noqa: BLE001 - it is raised again in the parent
                    chunk_result = ChunkResult.build([], add_traceback_note(error))
                # The last ones alone: to look at every name would copy the page of each.
                imported = [*islice(reversed(sys.modules), max(0, len(sys.modules) - module_count))][::-1]
                module_count = len(sys.modules)
                yield pickle.dumps((chunk_result, imported))
    except EOFError:
        return
    except BaseException as error:  # noqa: BLE001 - as above
        yield pickle.dumps((ChunkResult.build([], add_traceback_note(error)), ()))


def end_process_when_pipe_closes(read_end: int) -> None:
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


class CrashStackPipe:
    """The pipe, made before the fork. Each of the two processes calls its own method after it."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe()

    def set_up_in_child(self) -> None:
        """In the child: has a crash written into the pipe, and no file of its memory."""
        import resource

        os.close(self._read)
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        faulthandler.enable(self._write, all_threads=False)

    def set_up_in_parent(self) -> None:
        """In the parent."""
        os.close(self._write)

    def read_crash_places(self) -> str:
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
