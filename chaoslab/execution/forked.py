"""Each trial in a child process of its own: a copy of this one, so nothing of a trial is left to the next."""

from __future__ import annotations

import gc
import importlib
import os
import pickle
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from chaoslab.base.interrupts import SIGNALS
from chaoslab.execution.workers import Came, WorkerLost, from_here

STATM = Path("/proc/self/statm")
"""The memory of this process, in pages; the first number is the size of its addresses."""
S = TypeVar("S")
R = TypeVar("R")


def can_fork() -> bool:
    """Tells if this platform has `os.fork`."""
    return hasattr(os, "fork")


def can_limit_memory() -> bool:
    """Tells if a process can be given a limit of its memory here, and can tell how much it has."""
    return STATM.exists()


@contextmanager
def limited(memory_mb: int | None) -> Iterator[None]:
    """A context in which this process may take so many MiB more of memory than it has."""
    if memory_mb is None:
        yield
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    has = int(STATM.read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    most = has + memory_mb * 1024 * 1024
    resource.setrlimit(resource.RLIMIT_AS, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def in_child(do: Callable[[S], R], named: Callable[[S], str], *, memory_mb: int | None = None) -> Callable[[S], R]:
    """`do` in a child process for each call. Modules that a child has imported are imported here too, so that the next
    need not load them again. `named`: the name of a trial, for messages. `memory_mb`: as in `limited`.

    Raises (when called):
        WorkerLost: the child ended without a result.
        NotPicklable: the result cannot be sent from one process to another.
    """

    def within(spec: S) -> R:
        with limited(memory_mb):
            return do(spec)

    def call(spec: S) -> R:
        came, imported = _of_child(within, spec, named(spec))
        for name in imported:
            with suppress(Exception):  # a module made at run time, or one that is imported once only
                importlib.import_module(name)
        (result,) = came.of_it()
        return result

    return call


def _of_child(do: Callable[[S], R], spec: S, name: str) -> tuple[Came[R], Iterable[str]]:
    sys.stdout.flush()
    sys.stderr.flush()
    result_end, child_end = os.pipe()
    lifeline, held_end = os.pipe()
    gc.freeze()  # a child's collections leave the pages of this process alone, so they are not copied
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        with warnings.catch_warnings():  # other threads do not go along, and no trial waits for them
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if pid == 0:
            _child(do, spec, child_end, (result_end, held_end), lifeline)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        gc.unfreeze()
    os.close(child_end)
    os.close(lifeline)
    try:
        with os.fdopen(result_end, "rb") as came:
            sent = came.read()
    except BaseException:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        raise
    finally:
        os.close(held_end)
        _, status = os.waitpid(pid, 0)
    if not sent:
        raise WorkerLost(f"{name} kills the process that does it ({_ending(status)})")
    found: tuple[Came[R], Iterable[str]] = pickle.loads(sent)
    return found


def _ending(status: int) -> str:
    code = os.waitstatus_to_exitcode(status)
    return f"exit code {code}" if code >= 0 else signal.Signals(-code).name


def _child(do: Callable[[Any], Any], spec: Any, out: int, others: Iterable[int], lifeline: int) -> None:
    """Runs the trial and ends the process, whatever happens."""
    code = 1
    try:
        for end in others:
            os.close(end)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends this process
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        threading.Thread(target=_end_with_parent, args=(lifeline,), name="lifeline", daemon=True).start()
        known = len(sys.modules)
        try:
            came: Came[Any] = Came.of([do(spec)])
        except BaseException as error:  # noqa: BLE001 - it is raised again in the parent
            came = Came.of([], from_here(error))
        # The last ones alone: to look at every name would copy the page of each.
        imported = [*islice(reversed(sys.modules), max(0, len(sys.modules) - known))][::-1]
        with os.fdopen(out, "wb") as sent:
            sent.write(pickle.dumps((came, imported)))
        sys.stdout.flush()
        sys.stderr.flush()
        code = 0
    finally:
        os._exit(code)


def _end_with_parent(lifeline: int) -> None:
    os.read(lifeline, 1)
    os._exit(1)
