"""Threads of a program take turns on the machine, wait in virtual time, and are gone when the world is."""

import _thread
import contextvars
import gc
import os
import queue
import sys
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import thread as pool_threads
from typing import Any

import pytest

from chaoslab.worlds.virtual.machine.context import Unsupported
from chaoslab.worlds.virtual.machine.machine import STARTS_S, Hung
from chaoslab.worlds.virtual.patches import Patches, threads
from tests.worlds.virtual.machine_parts import a_world, now, tells, told
from tests.worlds.virtual.patch_parts import in_place

stand_ins = pytest.fixture(scope="module", autouse=True)(in_place)

_LOCAL = threading.local()
_LOCK, _EVENT, _SEMAPHORE = threading.Lock(), threading.Event(), threading.Semaphore(1)
_TOLD: contextvars.ContextVar[str] = contextvars.ContextVar("_TOLD", default="nothing")
_BEFORE = threading.Thread(target=lambda: time.sleep(3), name="made before")


def _run(*works: Callable[[], Any], **kwargs: Any) -> list[threading.Thread]:
    threads = [threading.Thread(target=work, **kwargs) for work in works]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return threads


def test_a_bare_thread_that_exits_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    def story() -> float:
        _thread.start_new_thread(sys.exit, ("its own end",))
        time.sleep(1)
        return now()

    assert a_world().run_program(story) == 1.0
    assert capsys.readouterr().err == ""


def test_threads_sleep_side_by_side_and_are_named_from_one() -> None:
    def story() -> list[Any]:
        seen: list[Any] = []

        def work(seconds: float) -> None:
            time.sleep(seconds)
            seen.append((now(), threading.current_thread().name))

        threads = _run(lambda: work(3), lambda: work(1), lambda: work(2))
        assert not any(each.is_alive() for each in threads)
        assert len({each.ident for each in threads}) == 3
        return [
            *seen,
            threading.current_thread() is threading.main_thread(),
            [each for each in threading.enumerate() if each in threads],
        ]

    seen, seconds = told(story)
    assert [moment for moment, _ in seen[:3]] == [1.0, 2.0, 3.0]
    assert [name.partition(" ")[0] for _, name in seen[:3]] == ["Thread-2", "Thread-3", "Thread-1"]
    assert seen[3:] == [True, []]
    assert seconds == 3.0


@tells([True, 4.0, False, 10.0], 10.0)
def test_a_join_that_gives_up_gives_up_at_its_moment() -> list[Any]:
    worker = threading.Thread(target=lambda: time.sleep(10))
    worker.start()
    worker.join(timeout=4)
    seen = [worker.is_alive(), now()]
    worker.join()
    return [*seen, worker.is_alive(), now()]


@tells([("a", 1.0), ("b", 2.0), ("c", 3.0), (False, 5.0), (False, True)], 5.0)
def test_who_holds_a_lock_makes_others_wait_and_who_waited_longest_is_next() -> list[Any]:
    lock, seen = threading.Lock(), list[Any]()

    def work(name: str) -> None:
        with lock:
            time.sleep(1)
            seen.append((name, now()))

    _run(lambda: work("a"), lambda: work("b"), lambda: work("c"))
    lock.acquire()
    seen.append((lock.acquire(timeout=2), now()))
    seen.append((lock.acquire(blocking=False), lock.locked()))
    return seen


def outcome(call: Callable[[], Any]) -> str:
    try:
        return repr(call())
    except Exception as error:  # noqa: BLE001 - what is compared
        return type(error).__name__  # the words differ between Pythons


def test_locks_and_queues_do_and_refuse_what_pythons_own_do() -> None:
    def story() -> list[str]:
        lock: Any = threading.Lock()
        again: Any = threading.RLock()
        line = queue.SimpleQueue[int]()
        found = [
            outcome(call)
            for call in (
                lambda: lock.acquire(False, 1),
                lambda: lock.acquire(timeout=-2),
                lambda: lock.acquire(timeout=threading.TIMEOUT_MAX * 2),
                lambda: lock.acquire(timeout=threading.TIMEOUT_MAX),
                lambda: lock.acquire(False),
                lambda: lock._at_fork_reinit(),
                lambda: lock.locked(),
                lambda: lock.release(),
                lambda: again.release(),
                lambda: again._release_save(),
                lambda: (again.acquire(), again.acquire(), again._is_owned()),
                lambda: line.get(timeout=-1),
                lambda: line.get_nowait(),
                lambda: line.put_nowait(7),
                lambda: line.get(timeout=0),
            )
        ]
        _run(lambda: found.append(outcome(lambda: (again.acquire(False), again._is_owned()))))
        return found

    assert told(story) == (story(), 0.0)


@tells([0, 2, 0, 0])
def test_a_reentrant_lock_counts_for_its_thread() -> list[int]:
    """Python tells it from 3.12 on."""
    lock: Any = threading.RLock()
    seen = [lock._recursion_count()]
    with lock, lock:
        seen.append(lock._recursion_count())
        _run(lambda: seen.append(lock._recursion_count()))
    return [*seen, lock._recursion_count()]


@tells([(False, True, 5.0), (True, 6.0), 8.0, 10.0], 13.0)
def test_events_conditions_semaphores_and_barriers_keep_virtual_time() -> list[Any]:
    seen: list[Any] = []
    event, condition, gate, barrier = (
        threading.Event(),
        threading.Condition(),
        threading.Semaphore(2),
        threading.Barrier(2),
    )
    threading.Timer(5, event.set).start()
    seen.append((event.wait(2), event.wait(), now()))

    def later() -> None:
        time.sleep(1)
        with condition:
            condition.notify_all()

    threading.Thread(target=later).start()
    with condition:
        seen.append((condition.wait(timeout=9), now()))

    def gated() -> None:
        with gate:
            time.sleep(1)

    _run(gated, gated, gated)
    seen.append(now())

    def late() -> None:
        time.sleep(2)
        barrier.wait()

    _run(late, barrier.wait)
    seen.append(now())
    with pytest.raises(threading.BrokenBarrierError):
        barrier.wait(timeout=3)
    return seen


@tells([False, True, 2.0, True, False, 3.0, (True, 4.0)], 5.0)
def test_what_was_made_before_the_world_works_in_it() -> list[Any]:
    _EVENT.clear()
    threading.Timer(2, _EVENT.set).start()
    seen: list[Any] = [_EVENT.wait(1), _EVENT.wait(), now()]
    seen += [_SEMAPHORE.acquire(), _SEMAPHORE.acquire(timeout=1), now()]
    _SEMAPHORE.release()

    def rival() -> None:
        seen.append((_LOCK.acquire(timeout=5), now()))
        _LOCK.release()

    with _LOCK:
        threading.Thread(target=rival).start()
        time.sleep(1)
    time.sleep(1)
    return seen


def test_a_thread_made_before_the_world_runs_in_it() -> None:
    def story() -> str:
        _BEFORE.start()
        _BEFORE.join()
        return _BEFORE.name

    with Patches():
        world = a_world()
        assert world.run_program(story) == "made before"
    assert (world.machine.now, _BEFORE.is_alive()) == (STARTS_S + 3, False)


def test_every_thread_has_locals_of_its_own_also_in_those_made_before() -> None:
    _LOCAL.name = "the process"

    def story() -> list[Any]:
        young, seen = threading.local(), list[Any]()

        def work(name: str) -> None:
            seen.append((hasattr(_LOCAL, "name"), hasattr(young, "name")))
            _LOCAL.name = young.name = name
            time.sleep(1)
            seen.append((_LOCAL.name, young.name))

        young.name = "main"
        _run(lambda: work("a"), lambda: work("b"))
        return [*seen, (_LOCAL.name, young.name)]

    (seen, _seconds) = told(story)
    assert seen == [(False, False), (False, False), ("a", "a"), ("b", "b"), ("the process", "main")]
    assert _LOCAL.name == "the process"


@tells(0)
def test_a_thousand_threads_leave_no_locals_behind() -> int:
    """Neither in locals of their own nor in those that outlive them."""

    class Big:
        pass

    kept = weakref.WeakSet[Big]()

    def keep(*where: threading.local) -> None:
        for each in where:
            each.big = Big()
            kept.add(each.big)

    old = threading.local()
    for _ in range(1000):
        young = threading.local()
        keep(young)
        worker = threading.Thread(target=keep, args=(young, old))
        worker.start()
        worker.join()
    del young, worker
    gc.collect()
    return len(kept)


def test_the_main_thread_has_the_callers_context_and_others_begin_without() -> None:
    def story() -> list[str]:
        seen = [_TOLD.get()]
        _TOLD.set("in the world")
        _run(lambda: seen.append(_TOLD.get()), lambda: contextvars.copy_context().run(lambda: seen.append(_TOLD.get())))
        held = contextvars.copy_context()
        _run(lambda: held.run(lambda: seen.append(_TOLD.get())))
        return seen

    token = _TOLD.set("by the caller")
    try:
        (seen, _) = told(story)
        assert seen == ["by the caller", "nothing", "nothing", "in the world"]
        assert _TOLD.get() == "by the caller"
    finally:
        _TOLD.reset(token)


def test_a_handle_is_done_with_its_thread_and_can_be_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Through it Python starts threads from 3.13 on; the fakes are the same whatever the version."""

    def story() -> list[Any]:
        found = []
        handle, spare = threads.create_thread_handle(), threads.make_thread_handle(7)
        assert threads.start_joinable_thread(lambda: time.sleep(2), handle=handle) is handle
        for wait_s in (1, None, None):
            handle.join(wait_s)
            found.append((now(), handle.is_done()))
        before = threading.Thread(target=time.sleep, args=(3,))
        made = threads.start_joinable_thread(before.run, handle=object())
        assert vars(before).pop("_handle") is made
        spare.begin()
        for _ in range(2):
            spare._set_done()
        for each in (made, spare, threads.create_thread_handle()):
            each.join()
            found.append((now(), each.is_done()))
        assert len({handle.ident, made.ident, spare.ident, 0}) == 4
        threads.start_joinable_thread(lambda: None).join()  # without a handle, and no thread's own
        return [*found, spare.ident, threads.create_thread_handle().ident, type(handle), type(spare)]

    found, _ = told(story)
    waited = [(1.0, False), *[(2.0, True)] * 2, *[(5.0, True)] * 2, (5.0, False)]
    assert found == [*waited, 7, 0, threads.ThreadHandle, threads.ThreadHandle]
    asked: list[Any] = []
    for name in ("_real_handle", "_real_make_handle", "_real_start_joinable"):
        monkeypatch.setattr(threads, name, lambda *args, name=name, **kwargs: asked.append((name, args, kwargs)))
    (
        threads.create_thread_handle(),
        threads.make_thread_handle(7),
        threads.start_joinable_thread(gc.collect, 8, daemon=False),
    )
    assert asked == [
        ("_real_handle", (), {}),
        ("_real_make_handle", (7,), {}),
        ("_real_start_joinable", (gc.collect,), {"handle": 8, "daemon": False}),
    ]


def test_a_threads_error_is_shown_and_ends_that_thread_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", lambda args: shown.append((args.exc_type, args.thread.name)))

    def story() -> float:
        threading.Thread(target=lambda: [][1], name="unlucky").start()
        threading.Thread(target=lambda: time.sleep(1000), name="endless").start()
        time.sleep(1)
        return now()

    assert told(story) == (1.0, 1.0)
    assert shown == [(IndexError, "unlucky")] * 2


def test_threads_that_outlive_the_run_end_with_it_and_clean_up() -> None:
    seen: list[str] = []

    def work() -> None:
        try:
            time.sleep(1e6)
        finally:
            seen.append(threading.current_thread().name)

    def story() -> None:
        threading.Thread(target=work, daemon=True, name="daemon").start()
        threading.Thread(target=work, name="other").start()
        threading.Thread(target=threading.Event().wait, name="never woken").start()
        time.sleep(1)

    assert told(story) == (None, 1.0)
    assert seen == ["daemon", "other"] * 2


@pytest.mark.parametrize(
    ("last_words", "raised"), [(lambda: os.system("true"), Unsupported), (lambda: 1 // 0, ZeroDivisionError)]
)
def test_what_one_does_when_it_is_ended_keeps_nothing_from_being_put_back(
    last_words: Callable[[], object], raised: type[BaseException]
) -> None:
    own, seen = threading.local(), list[str]()
    own.value = "the process's"

    def served() -> None:
        try:
            time.sleep(1e6)
        finally:
            last_words()

    def other() -> None:
        try:
            time.sleep(1e6)
        finally:
            seen.append("the other")

    world = a_world()
    world.machine.endings.append(lambda: seen.append("an ending"))

    def story() -> None:
        world.machine.start_thread(served, name="a service at work")
        world.machine.start_thread(other, name="another")
        time.sleep(1)

    with Patches(), pytest.raises(raised):
        world.run_program(story)
    assert own.value == "the process's"
    assert seen == ["the other", "an ending"]


def test_an_error_of_who_is_ended_hides_no_hang() -> None:
    world = a_world()

    def served() -> None:
        try:
            threading.Event().wait()
        finally:
            raise OSError("its last words")

    def story() -> None:
        world.machine.start_thread(served, name="a service at work")
        threading.Event().wait()

    with Patches(), pytest.raises(Hung):
        world.run_program(story)


def test_nothing_of_a_worlds_threads_is_left_in_the_process() -> None:
    inner: Any = threading

    def what_the_end_of_the_process_sees() -> list[Any]:
        return [set(inner._active), set(inner._limbo), set(inner._dangling), set(pool_threads._threads_queues),
                set(getattr(inner, "_shutdown_locks", ()))]  # fmt: skip

    kept: list[threading.Thread] = []

    def story() -> None:
        kept.extend(threading.Thread(target=lambda: time.sleep(1e6)) for _ in range(3))
        for each in kept:
            each.start()
        pool_threads.ThreadPoolExecutor(2).submit(threading.current_thread).result()
        time.sleep(1)

    before = what_the_end_of_the_process_sees()
    with Patches():
        a_world().run_program(story)
    assert what_the_end_of_the_process_sees() == before
    assert not any(each.is_alive() for each in kept)
    for each in kept:
        each.join()


def test_other_threads_of_the_process_go_on_for_real_meanwhile() -> None:
    with Patches():
        found: list[Any] = []
        other = threading.Thread(target=lambda: found.append((threading.Lock(), threading.get_ident())))
        other.start()
        other.join()

        def story() -> Any:
            return threading.Lock()

        virtual = a_world().run_program(story)
    assert found[0][1] == other.ident
    assert type(found[0][0]) is type(threading.Lock())
    assert type(virtual) is not type(threading.Lock())
    with virtual:  # and outside it is a lock like any other
        assert not virtual.acquire(blocking=False)
        late = threading.Thread(target=lambda: virtual.acquire(timeout=0.01))
        late.start()
        late.join()


@tells([True, True])
def test_a_lock_is_still_a_class() -> list[Any]:
    class Keeper:
        lock_class = None

    Keeper.lock_class = threading.Lock  # type: ignore[assignment]
    lock: Any = Keeper().lock_class()  # type: ignore[misc]
    with lock:
        return [isinstance(threading.Lock, type), lock.locked()]
