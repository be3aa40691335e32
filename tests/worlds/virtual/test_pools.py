"""Thread pools and their futures, those of the process included."""

import contextvars
import queue
import threading
import time
from collections.abc import Iterator
from concurrent import futures
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor
from multiprocessing.pool import ThreadPool
from typing import Any

import pytest

from chaoslab.worlds.virtual.machine.context import Unsupported
from chaoslab.worlds.virtual.patches import Patches
from tests.worlds.virtual.machine_parts import a_world, now, tells, told
from tests.worlds.virtual.patch_parts import in_place

stand_ins = pytest.fixture(scope="module", autouse=True)(in_place)


def _asleep(seconds: float) -> float:
    time.sleep(seconds)
    return seconds


@tells([[3, 1, 1, 2], 4.0], 4.0)
def test_a_pool_of_two_takes_two_at_a_time() -> list[Any]:
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(_asleep, [3, 1, 1, 2]))
    return [found, now()]


@tells([(1, 2, 3.0), (4, 4.0), 5.5, 15.0], 15.0)
def test_waiting_for_futures_ends_at_its_moment() -> list[Any]:
    seen: list[Any] = []
    with ThreadPoolExecutor(4) as pool:
        jobs = [pool.submit(_asleep, seconds) for seconds in (4, 2, 6)]
        done, left = futures.wait(jobs, timeout=3)
        seen.append((len(done), len(left), now()))
        done, _ = futures.wait(left, return_when=FIRST_COMPLETED)
        seen.append((done.pop().result(), now()))
        with pytest.raises(TimeoutError):
            jobs[2].result(timeout=1)
        with pytest.raises(TimeoutError):
            list(pool.map(_asleep, [10], timeout=0.5))
        seen.append(now())
    return [*seen, now()]


@tells([list(range(50))] * 2, 1.0)
def test_futures_that_are_done_at_once_come_in_the_order_in_which_they_were_made() -> list[Any]:
    with ThreadPoolExecutor(50) as pool:
        jobs = [pool.submit(_asleep, 1) for _ in range(50)]
        order = [jobs.index(job) for job in futures.as_completed(jobs)]
        done, _ = futures.wait(jobs)
    return [order, [jobs.index(job) for job in done]]


def test_a_pool_that_is_older_than_the_world_works_in_it_and_then_again_for_real() -> None:
    with ThreadPoolExecutor(1, thread_name_prefix="old") as pool:
        real = pool.submit(threading.get_ident).result()

        def story() -> list[Any]:
            jobs = [pool.submit(_asleep, 2), pool.submit(_asleep, 3)]
            return [
                [job.result() for job in jobs],
                now(),
                pool.submit(lambda: threading.current_thread().name).result(),
            ]

        assert told(story) == ([[2, 3], 5.0, "old_0"], 5.0)
        assert pool.submit(threading.get_ident).result() == real


def test_a_pool_that_a_world_shuts_down_lets_its_real_threads_go() -> None:
    pool = ThreadPoolExecutor(1)
    pool.submit(int).result()
    (worker,) = pool._threads

    def story() -> None:
        pool.submit(_asleep, 1).result()
        pool.shutdown()
        with pytest.raises(RuntimeError, match="after shutdown"):
            pool.submit(int)

    with Patches():
        a_world().run_program(story)
    worker.join(timeout=10)
    assert not worker.is_alive()


def test_a_pool_made_in_one_world_is_fresh_in_the_next() -> None:
    pools: list[ThreadPoolExecutor] = []

    def story() -> list[Any]:
        if not pools:
            pools.append(ThreadPoolExecutor(2))
        return [pools[0].submit(_asleep, 1).result(), now()]

    assert told(story) == ([1, 1.0], 1.0)
    assert pools[0].submit(int).result() == 0
    pools[0].shutdown()


def test_a_broken_initializer_breaks_the_pool_as_ever(caplog: pytest.LogCaptureFixture) -> None:
    def broken() -> None:
        raise OSError("no")

    def story() -> str:
        with ThreadPoolExecutor(1, initializer=broken) as pool, pytest.raises(futures.BrokenExecutor) as caught:
            pool.submit(int).result()
        return type(caught.value).__name__

    assert told(story)[0] == "BrokenThreadPool"
    assert [record.getMessage() for record in caplog.records] == ["Exception in initializer:"] * 2


@tells(["nobody", "Ana"])
def test_a_context_goes_along_into_a_pool() -> list[str]:
    name: contextvars.ContextVar[str] = contextvars.ContextVar("name", default="nobody")
    name.set("Ana")
    with ThreadPoolExecutor(1) as pool:
        return [pool.submit(name.get).result(), pool.submit(contextvars.copy_context().run, name.get).result()]


@tells([(1, 2.0, True, 0)] * 3 + [9.0], 9.0)
def test_queues_of_both_kinds_wait_in_virtual_time() -> list[Any]:
    seen: list[Any] = []
    kinds: tuple[Any, ...] = (queue.SimpleQueue(), queue.Queue(), queue.PriorityQueue())
    for kind in kinds:
        begun = now()
        threading.Timer(2, kind.put, (1,)).start()
        with pytest.raises(queue.Empty):
            kind.get(timeout=1)
        seen.append((kind.get(), round(now() - begun, 2), kind.empty(), kind.qsize()))
        with pytest.raises(queue.Empty):
            kind.get_nowait()
    full: queue.Queue[int] = queue.Queue(maxsize=1)
    full.put(1)
    with pytest.raises(queue.Full):
        full.put(2, timeout=3)
    return [*seen, now()]


@tells([(0, 10), (1, 11), (2, 12)])
def test_many_readers_of_one_queue_are_served_in_turn() -> list[Any]:
    jobs: queue.SimpleQueue[int] = queue.SimpleQueue()
    seen: list[Any] = []
    readers = [threading.Thread(target=lambda n=n: seen.append((n, jobs.get()))) for n in range(3)]
    for each in readers:
        each.start()
    for n in (10, 11, 12):
        jobs.put(n)
    for each in readers:
        each.join()
    return seen


def test_a_queue_outlives_its_world() -> None:
    def story() -> Any:
        return queue.SimpleQueue()

    with Patches():
        kept = a_world().run_program(story)
    threading.Timer(0.01, kept.put, ("later",)).start()
    assert kept.get(timeout=10) == "later"


def test_the_pool_of_multiprocessing_waits_for_a_pipe_and_is_refused_though_threads_swallow_it() -> None:
    def story() -> list[float]:
        with ThreadPool(2) as pool:
            return pool.map(_asleep, [1, 1, 1, 1], chunksize=1)

    with Patches(), pytest.raises(Unsupported, match="waiting for a real file or pipe"):
        a_world().run_program(story)


@tells([True, 2, True, 2.0], 2.0)
def test_a_future_cancelled_in_the_queue_never_runs() -> Iterator[Any] | list[Any]:
    with ThreadPoolExecutor(1) as pool:
        running, waiting = pool.submit(_asleep, 2), pool.submit(_asleep, 5)
        called: list[Future[float]] = []
        running.add_done_callback(called.append)
        return [waiting.cancel(), running.result(), called == [running], now()]
