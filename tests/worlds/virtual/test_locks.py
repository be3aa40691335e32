"""A lock of the process is never left held: not where a run ends, not near the limit of recursion, and not beside other
threads of the process. The locks of `threading` are such: were they left held, no thread could start any more.
"""

import gc
import queue
import sys
import threading
import time
from _thread import allocate_lock
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from greenlet import GreenletExit

from chaoslab.worlds.virtual.machine import _locks as locks
from chaoslab.worlds.virtual.machine import _standstill as standstill
from chaoslab.worlds.virtual.machine._locks import Lock, ReLock
from chaoslab.worlds.virtual.machine.context import Unsupported
from chaoslab.worlds.virtual.machine.machine import Hung
from tests.worlds.virtual.machine_parts import a_world, now
from tests.worlds.virtual.patch_parts import in_place

stand_ins = pytest.fixture(scope="module", autouse=True)(in_place)

_KEPT = threading.Lock()
_inner: Any = threading
needs_guard = pytest.mark.skipif(sys.version_info >= (3, 13), reason="the interpreter keeps its threads itself")


def held() -> list[str]:
    """The locks that a run might leave held."""
    return [name for of in (threading, sys.modules[__name__]) for name, lock in vars(of).items() if _is_held(lock)]


def _is_held(lock: Any) -> bool:
    return isinstance(lock, Lock) and lock.locked()


def let_go(*names: str) -> None:
    """A red test harms no other."""
    for of in (threading, sys.modules[__name__]):
        for name in names:
            if _is_held(vars(of).get(name)):
                vars(of)[name].release()


# Where a run ends.


def _takes() -> None:
    while True:
        with _KEPT:
            pass


def _starts() -> None:
    while True:
        threading.Thread(target=int).start()


@pytest.mark.parametrize("story", [_takes, _starts])
def test_a_run_that_ends_where_a_lock_is_taken_leaves_none_held(
    story: Callable[[], None], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gc.collect()  # what other tests left would else be finalized in these runs, and end where they end
    left = {}
    for most in range(10, 30):
        monkeypatch.setattr(standstill, "LOOKS_MAX", most)
        with pytest.raises(Hung, match="takes a lock again and again"):
            a_world().run_program(story)
        left[most] = held()
        let_go(*left[most])
    assert {most: names for most, names in left.items() if names} == {}
    assert capsys.readouterr().err == ""  # a thread that was ended before it had begun has not failed


def _holds_for_ever() -> None:
    with _KEPT:
        _waits_for_ever(lambda: time.sleep(1))


def _waits_for_ever(wait: Callable[[], object]) -> None:
    while True:
        with suppress(BaseException):
            wait()


@pytest.mark.parametrize(
    "works", [(_holds_for_ever,), (_holds_for_ever, lambda: _waits_for_ever(_KEPT.acquire))], ids=["holds", "waits too"]
)
def test_a_thread_that_will_not_end_keeps_no_lock(works: tuple[Callable[[], None], ...]) -> None:
    def story() -> None:
        for work in works:
            threading.Thread(target=work).start()
        time.sleep(2)

    a_world().run_program(story)
    left = held()
    let_go(*left)
    assert left == []
    a_world().run_program(_uses)
    assert held() == []


# Near the limit of recursion.


def _deep(depth: int, do: Callable[[], Any]) -> Any:
    return _deep(depth - 1, do) if depth else do()


def _depths() -> range:
    return range(sys.getrecursionlimit() - 100, sys.getrecursionlimit())


def _uses() -> None:
    with _KEPT:
        pass


def test_a_lock_that_is_taken_near_the_limit_of_recursion_is_released_there() -> None:
    left = list[int]()

    def story() -> None:
        for depth in _depths():
            with suppress(RecursionError):
                _deep(depth, _uses)
            if held():
                left.append(depth)
                let_go(*held())

    a_world().run_program(story)
    assert left == []


def test_asking_for_a_thread_near_the_limit_of_recursion_lets_others_start() -> None:
    left = list[int]()

    def story() -> None:
        for depth in _depths():
            thread = threading.Thread(target=int)
            thread.start()
            time.sleep(1)  # it is over, and whoever asks first notes that
            with suppress(RecursionError):
                _deep(depth, thread.is_alive)
            if held():
                left.append(depth)
                let_go(*held())

    a_world().run_program(story)
    assert left == []


def test_who_waits_for_a_lock_is_not_lost_where_releasing_it_fails() -> None:
    got = list[int]()

    def rival(depth: int) -> None:
        with _KEPT:
            got.append(depth)

    def story() -> None:
        for depth in _depths():
            waits = threading.Thread(target=rival, args=(depth,))
            _KEPT.acquire()
            waits.start()
            time.sleep(1)
            try:
                _deep(depth, _KEPT.release)
            except RecursionError:
                if _KEPT.locked():
                    _KEPT.release()
            with _KEPT:
                pass
            waits.join()

    a_world().run_program(story)
    assert got == [*_depths()]


# Beside other threads of the process.


class Watched:
    """A real lock that says when somebody really waits for it, and is followed when it is released."""

    def __init__(self, released: Callable[[], None] = lambda: None) -> None:
        self.real, self.asked, self.released = allocate_lock(), threading.Event(), released

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        if blocking:
            self.asked.set()
        return self.real.acquire(blocking, timeout)

    def release(self) -> None:
        self.real.release()
        self.released()

    def locked(self) -> bool:
        return self.real.locked()


@pytest.mark.parametrize("known", [True, False])
def test_a_lock_that_another_thread_of_the_process_holds_is_really_waited_for(known: bool) -> None:
    watched, holding = Watched(), threading.Event()
    lock = Lock.wrap_real(watched)

    def holds() -> None:
        with lock if known else watched.real:
            holding.set()
            watched.asked.wait(60)

    def story() -> float:
        with lock:
            return now()

    real = threading.Thread(target=holds)
    real.start()
    holding.wait(60)
    try:
        assert a_world().run_program(story) == 0
    finally:
        watched.asked.set()
        real.join()
    assert not lock.locked()


@pytest.mark.parametrize("timeout", [-1, 5])
def test_a_lock_that_is_held_for_good_is_told_as_ever(timeout: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "PATIENCE_S", 0)
    watched = Watched()
    watched.real.acquire()
    lock = Lock.wrap_real(watched)

    def story() -> list[Any]:
        found: list[Any] = [lock.acquire(timeout=timeout), now()]
        watched.asked.clear()
        return [*found, lock.acquire(timeout=timeout), now(), watched.asked.is_set()]

    if timeout < 0:
        with pytest.raises(Hung, match="a lock"):
            a_world().run_program(story)
    else:
        assert a_world().run_program(story) == [False, 5.0, False, 10.0, False]  # it is really waited for once


def test_another_thread_of_the_process_that_wakes_one_of_the_world_releases_its_lock_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(locks, "PATIENCE_S", 0)
    holding, go, raised = threading.Event(), threading.Event(), list[BaseException]()

    def holds() -> None:
        try:
            with _KEPT:
                holding.set()
                go.wait(60)
        except Unsupported as error:
            raised.append(error)

    def story() -> None:
        threading.Thread(target=_uses).start()
        time.sleep(1)
        go.set()
        real.join()

    real = threading.Thread(target=holds)
    real.start()
    holding.wait(60)
    with pytest.raises(Unsupported, match="a thread of the process that runs no world") as refused:
        a_world().run_program(story)
    assert raised == [refused.value]
    left = held()
    let_go(*left)
    assert left == []


def test_who_takes_a_reentrant_lock_in_the_moment_of_its_release_has_it() -> None:
    taken, go, failed = threading.Event(), threading.Event(), list[BaseException]()

    def next_one() -> None:
        lock.acquire()
        taken.set()
        go.wait(60)
        try:
            lock.release()
        except RuntimeError as error:
            failed.append(error)

    def released() -> None:
        if not real.ident:
            real.start()
            taken.wait(60)

    real = threading.Thread(target=next_one)
    lock = ReLock.wrap_real(Watched(released))
    with lock:
        pass
    go.set()
    real.join()
    assert failed == []


@needs_guard
def test_a_thread_that_ends_while_others_are_gone_through_disturbs_nobody() -> None:
    """CPython looks at the locks of all threads when one starts, and another thread may run meanwhile."""

    class Looked:
        def locked(self) -> bool:
            time.sleep(2)
            return False

    looked = Looked()

    def story() -> float:
        threading.Thread(target=lambda: time.sleep(1)).start()
        with _inner._shutdown_locks_lock:
            _inner._shutdown_locks.add(looked)
            _inner._maintain_shutdown_locks()
        return now()

    try:
        assert a_world().run_program(story) == 2
    finally:
        _inner._shutdown_locks.discard(looked)


def test_another_thread_of_the_process_that_puts_something_into_a_queue_disturbs_its_reader_no_further() -> None:
    go, put, ended = threading.Event(), list[Callable[[int], None]](), list[type[BaseException] | None]()

    def story() -> None:
        found = queue.SimpleQueue[int]()

        def reads() -> None:
            try:
                found.get()
            finally:
                ended.append(sys.exc_info()[0])

        threading.Thread(target=reads).start()
        time.sleep(1)
        put.append(found.put)
        go.set()
        real.join()

    def puts() -> None:
        go.wait(60)
        with suppress(Unsupported):
            put[0](1)

    real = threading.Thread(target=puts)
    real.start()
    with pytest.raises(Unsupported, match="a thread of the process that runs no world"):
        a_world().run_program(story)
    assert ended == [GreenletExit]


def test_a_condition_works_when_its_world_is_over() -> None:
    condition = a_world().run_program(threading.Condition)
    with condition:
        assert not condition.wait(0)
