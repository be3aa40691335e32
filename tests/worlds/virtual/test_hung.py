"""A run that would never end is found at once, and lines that a person can act on say who waits for what."""

import asyncio
import contextlib
import queue
import re
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import httpx
import pytest
import requests

from chaoslab.worlds.virtual.machine.machine import Hung
from chaoslab.worlds.virtual.network.network import NetworkEnd
from chaoslab.worlds.virtual.patches import Patches
from tests.worlds.virtual.machine_parts import a_world
from tests.worlds.virtual.patch_parts import in_place

stand_ins = pytest.fixture(scope="module", autouse=True)(in_place)

FOR_EVER = "nothing is ready and nothing is due: it would wait for ever"


class _Silent:
    """A service that hears and never answers."""

    def __init__(self, end: NetworkEnd) -> None:
        end.receiver = self

    def handle_arrival(self) -> None:
        pass

    def handle_reset(self, error: OSError) -> None:
        pass

    def handle_write_room(self) -> None:
        pass


def _begin(end: NetworkEnd) -> None:
    _Silent(end)


def _hung(story: Callable[[], Any], **kwargs: Any) -> list[str]:
    """The reason, and who waits for what, without line numbers; the same in the second world as in the first."""
    said = []
    with Patches():
        for _ in range(2):
            world = a_world(**kwargs)
            world.network.listen("silent", 80, _begin)
            with pytest.raises(Hung) as caught:
                world.run_program(story)
            said.append([re.sub(r", line \d+", "", line) for line in str(caught.value).splitlines()])
    assert said[0] == said[1]
    return said[0]


def test_a_future_that_nobody_sets() -> None:
    def story() -> None:
        Future[int]().result()

    assert _hung(story) == [FOR_EVER, f"the agent waits in Future.result, called in {__name__}.story"]


def test_two_threads_that_wait_for_each_others_lock() -> None:
    def story() -> None:
        left, right = threading.Lock(), threading.RLock()

        def one() -> None:
            with left:
                time.sleep(1)
                right.acquire()

        def two() -> None:
            with right:
                time.sleep(1)
                left.acquire()

        threads = [threading.Thread(target=one), threading.Thread(target=two, name="the other")]
        for each in threads:
            each.start()
        threads[0].join()

    assert _hung(story) == [
        FOR_EVER,
        f"the agent waits in Thread.join of Thread-1 (one), called in {__name__}.story",
        f"Thread-1 (one) waits for a lock held by the other, called in {__name__}.one",
        f"the other waits for a lock held by Thread-1 (one), called in {__name__}.two",
    ]


def test_a_lock_taken_twice_by_one_thread() -> None:
    def story() -> None:
        lock = threading.Lock()
        lock.acquire()
        lock.acquire()

    assert _hung(story) == [FOR_EVER, f"the agent waits for a lock held by itself, called in {__name__}.story"]


def test_queues_events_and_pools() -> None:
    def story() -> None:
        threading.Thread(target=lambda: queue.Queue[int]().get(), name="reader").start()
        threading.Thread(target=lambda: queue.SimpleQueue[int]().get(), name="simple reader").start()
        threading.Thread(target=threading.Barrier(2).wait, name="guest").start()
        with ThreadPoolExecutor(1, thread_name_prefix="pool") as pool:
            pool.submit(threading.Event().wait)

    assert _hung(story) == [
        FOR_EVER,
        f"the agent waits in ThreadPoolExecutor.shutdown, called in {__name__}.story",
        f"reader waits in Queue.get, called in {__name__}.<lambda>",
        f"simple reader waits in SimpleQueue.get, called in {__name__}.<lambda>",
        "guest waits in Barrier.wait",
        "pool_0 waits in Event.wait",
    ]


def test_tasks_and_what_they_wait_for() -> None:
    async def locked(lock: asyncio.Lock) -> None:
        async with lock:
            await asyncio.Event().wait()

    async def reading() -> None:
        await asyncio.Queue[int]().get()

    async def promised() -> None:
        await asyncio.get_running_loop().create_future()

    async def main() -> None:
        lock = asyncio.Lock()
        tasks = [asyncio.create_task(locked(lock), name=f"locked {n}") for n in range(2)]
        tasks += [asyncio.create_task(reading()), asyncio.create_task(promised())]
        await asyncio.gather(*tasks)

    assert _hung(lambda: asyncio.run(main())) == [
        FOR_EVER,
        f"the agent: Task-1 waits for tasks Task-4, Task-5, locked 0, locked 1, called in {__name__}.main",
        f"the agent: Task-4 waits in Queue.get, called in {__name__}.reading",
        f"the agent: Task-5 waits for something that nobody has promised, called in {__name__}.promised",
        f"the agent: locked 0 waits in Event.wait, called in {__name__}.locked",
        f"the agent: locked 1 waits in Lock.acquire, called in {__name__}.locked",
    ]


def test_a_task_that_waits_for_another() -> None:
    async def never() -> None:
        await asyncio.Event().wait()

    async def main() -> None:
        await asyncio.create_task(never(), name="the slow one")

    assert _hung(lambda: asyncio.run(main()))[1:] == [
        f"the agent: Task-1 waits for task the slow one, called in {__name__}.main",
        f"the agent: the slow one waits in Event.wait, called in {__name__}.never",
    ]


def test_a_loop_that_waits_for_its_thread() -> None:
    def tool() -> None:
        threading.Event().wait()

    async def main() -> None:
        await asyncio.to_thread(tool)

    assert _hung(lambda: asyncio.run(main()))[1:] == [
        f"the agent: Task-1 waits in to_thread, called in {__name__}.main",
        f"asyncio_0 waits in Event.wait, called in {__name__}.tool",
    ]


def test_a_service_that_never_answers() -> None:
    def with_requests() -> None:
        requests.get("http://silent/", timeout=None)

    async def with_httpx() -> None:
        async with httpx.AsyncClient(timeout=None) as client:
            await client.get("http://silent/")

    def with_socket() -> None:
        socket.create_connection(("silent", 80)).recv(1)

    recv = f"recv from silent:80, called in {__name__}"
    assert _hung(with_requests)[1:] == [f"the agent waits in {recv}.with_requests"]
    assert _hung(with_socket)[1:] == [f"the agent waits in {recv}.with_socket"]
    assert _hung(lambda: asyncio.run(with_httpx()))[1:] == [f"the agent: Task-1 waits in {recv}.with_httpx"]


def test_an_endless_loop_of_tasks_that_let_each_other_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chaoslab.worlds.virtual.machine._standstill.TURNS_MAX", 3000)

    async def spin() -> None:
        while True:
            await asyncio.sleep(0)

    def swallowed() -> None:
        with contextlib.suppress(BaseException):
            asyncio.run(spin())

    def beside() -> None:
        spinner = threading.Thread(target=lambda: asyncio.run(spin()), name="spinner")
        spinner.start()
        spinner.join()

    for_ever = "it would turn for ever: 3000 turns without any time passing, and nothing is due"
    found = _hung(lambda: asyncio.run(spin()))
    assert found == [for_ever, f"the agent: Task-1 waits in sleep, called in {__name__}.spin"]
    assert _hung(swallowed)[0] == for_ever
    assert _hung(beside)[0] == for_ever


def test_who_asks_again_and_again_without_waiting_is_given_what_is_to_come() -> None:
    """A real machine would let time pass meanwhile."""

    def beside(poll: Callable[[list[int]], Any]) -> float:
        def story() -> float:
            done: list[int] = []
            threading.Timer(1.0, done.append, [1]).start()
            while not done:
                poll(done)
            return time.monotonic()

        began, ended = a_world().run_program(time.monotonic), a_world().run_program(story)
        return round(ended - began, 3)

    async def of_tasks(done: list[int]) -> None:
        while not done:
            await asyncio.sleep(0)

    assert beside(lambda _: time.sleep(0)) == 1.0
    assert beside(lambda done: asyncio.run(of_tasks(done))) == 1.0


def test_a_loop_that_turns_as_often_while_time_passes_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chaoslab.worlds.virtual.machine._standstill.TURNS_MAX", 100)

    async def story() -> str:
        for _ in range(500):
            time.sleep(0.001)
            await asyncio.sleep(0)
        return "done"

    assert a_world().run_program_async(story) == "done"


def test_the_virtual_deadline() -> None:
    def story() -> None:
        threading.Thread(target=lambda: time.sleep(1e6), name="sleeper").start()
        while True:
            time.sleep(7)

    assert _hung(story, deadline_s=100.0) == [
        "not over after 100 s of virtual time",
        f"the agent waits in time.sleep(7), called in {__name__}.story",
        f"sleeper waits in time.sleep(1e+06), called in {__name__}.<lambda>",
    ]
