"""The executors of this process, which run trials one after the other, and what travels between processes: work,
results and errors."""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from chaoslab.execution.spec import Executor, Work

S = TypeVar("S")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
TellNews = Callable[[], AbstractContextManager[object]]


class WorkerLost(Exception):
    """A trial killed every worker that it was given to."""


class NotPicklable(TypeError):
    """The work cannot be sent to another process; the message gives the reason and a remedy."""

    @classmethod
    def build(cls, error: Exception) -> NotPicklable:
        return cls(
            f"the workers cannot be given this ({error}): functions have to stand at the top level of a module; move "
            "them into one, or take no cluster"
        )


ExecutorFactory = Callable[[float | None, TellNews], Executor]
"""Makes an executor on other processes than this one's children, with the limit of a trial in seconds."""
_executor_factory: ContextVar[ExecutorFactory | None] = ContextVar("spread", default=None)


@contextmanager
def use_executor_factory(elsewhere: ExecutorFactory) -> Iterator[None]:
    """A context in which what asks for several processes gets this executor."""
    before = _executor_factory.set(elsewhere)
    try:
        yield
    finally:
        _executor_factory.reset(before)


def make_configured_executor(limit_s: float | None, heard: TellNews) -> Executor | None:
    """The executor of `use_executor_factory`; None outside of it."""
    make_executor = _executor_factory.get()
    return None if make_executor is None else make_executor(limit_s, heard)


@dataclass(frozen=True)
class InProcessExecutor:
    """An executor in this process. A trial begins only after the result of the last was taken. `heard` is entered
    before each trial: an interrupt does no harm there."""

    heard: TellNews = nullcontext

    def map(self, work: Work[S, R], specs: Iterable[S]) -> Generator[R, None, None]:
        with work.open_runner() as do:
            for spec in specs:
                with self.heard():
                    pass
                yield do(spec)


class KeptOpenExecutor:
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
                self._do, self._work = self._stack.enter_context(work.open_runner()), work
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


UNSENT = (
    "what came of it cannot be sent from one process to another ({}): take jobs=1 and no isolate=, or have it answered "
    "in plain data"
)


def pack_work(work: Work[Any, Any]) -> bytes:
    """The work as bytes, since a process that cannot unpickle its arguments dies silently."""
    try:
        return pickle.dumps(work)
    except Exception as error:  # an object's own code may raise anything
        raise NotPicklable.build(error) from error


@dataclass(frozen=True)
class ChunkResult(Generic[R_co]):
    """The results of some trials, up to the one that failed, if one did. They travel as bytes and are unpickled where
    they are taken, so that an error in unpickling is told there."""

    sent: bytes
    error: BaseException | None = None

    @classmethod
    def build(cls, chunk_items: list[Any], error: BaseException | None = None) -> ChunkResult[Any]:
        try:
            return cls(pickle.dumps(chunk_items), error)
        except Exception as unsent:  # noqa: BLE001 - an object's own code may raise anything
            return cls(pickle.dumps([]), NotPicklable(UNSENT.format(unsent)))

    @property
    def unpacked_results(self) -> list[R_co]:
        try:
            chunk_items: list[R_co] = pickle.loads(self.sent)
        except Exception as error:
            raise NotPicklable(UNSENT.format(error)) from error
        return chunk_items

    def iterate_results(self) -> Iterator[R_co]:
        yield from self.unpacked_results
        if self.error is not None:
            raise self.error


def unpack_work(sent: Work[Any, Any] | bytes) -> Work[Any, Any]:
    """The work of `pack_work`. Raises NotPicklable: it cannot be made here, as where a module is missing."""
    if not isinstance(sent, bytes):
        return sent
    try:
        work: Work[Any, Any] = pickle.loads(sent)
    except Exception as error:  # an object's own code may raise anything
        raise NotPicklable.build(error) from error
    return work


def add_traceback_note(error: BaseException) -> BaseException:
    """The error, with a note of its traceback."""
    traceback_text = "".join(traceback.format_exception(error)).rstrip()
    portable_error = make_picklable_error(error, traceback_text)
    if portable_error is error:
        error.add_note(f"in a worker:\n{traceback_text}")
    return portable_error


def make_picklable_error(error: BaseException, otherwise: str) -> BaseException:
    """The error itself if another process can unpickle it, else a RuntimeError with the text `otherwise`."""
    try:
        if type(pickle.loads(pickle.dumps(error))) is type(error):
            return error
    except Exception:  # noqa: BLE001 - an exception's own code may raise anything
        pass
    return RuntimeError(otherwise)
