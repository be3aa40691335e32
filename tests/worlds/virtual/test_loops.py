"""Event loops: one in another, one a thread, made by hand; and what blocks one of them blocks no other."""

import asyncio
import sys
import threading
import time
from collections.abc import AsyncIterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import anyio
import anyio.from_thread
import anyio.to_thread
import pytest
import tenacity

from chaoslab.worlds.virtual.machine.context import Unsupported
from chaoslab.worlds.virtual.network._loop import VirtualLoop
from chaoslab.worlds.virtual.patches import Patches
from tests.waiting import together
from tests.worlds.virtual.machine_parts import a_world, now, tells, told
from tests.worlds.virtual.patch_parts import in_place

stand_ins = pytest.fixture(scope="module", autouse=True)(in_place)


async def _asleep(seconds: float) -> float:
    await asyncio.sleep(seconds)
    return seconds


def test_a_sync_tool_runs_a_loop_of_its_own_inside_a_loop() -> None:
    def tool() -> float:
        return asyncio.run(_asleep(2))

    async def main() -> list[Any]:
        return [await asyncio.gather(asyncio.to_thread(tool), asyncio.to_thread(tool), _asleep(1)), now()]

    assert told(lambda: asyncio.run(main())) == ([[2, 2, 1], 2.0], 2.0)


@tells("asyncio.run() cannot be called from a running event loop")
def test_a_loop_in_a_loop_of_the_same_thread_is_refused_as_ever() -> str:
    async def main() -> None:
        inner = _asleep(1)
        try:
            asyncio.run(inner)
        finally:
            inner.close()

    with pytest.raises(RuntimeError) as caught:
        asyncio.run(main())
    return str(caught.value)


def test_a_blocking_call_in_a_coroutine_stops_its_loop_and_no_other() -> None:
    def story() -> list[Any]:
        seen: list[Any] = []

        async def ticking(name: str) -> None:
            for _ in range(3):
                await asyncio.sleep(1)
                seen.append((name, now()))

        async def blocking() -> None:
            ticks = asyncio.create_task(ticking("blocked"))
            await asyncio.sleep(0.5)
            time.sleep(4)
            await ticks

        other = threading.Thread(target=lambda: asyncio.run(ticking("free")))
        other.start()
        asyncio.run(blocking())
        other.join()
        return seen

    seen, _ = told(story)
    assert [moment for name, moment in seen if name == "free"] == [1.0, 2.0, 3.0]
    assert [moment for name, moment in seen if name == "blocked"] == [4.5, 5.5, 6.5]


@tells([None, 3, 1, 6.0], 6.0)
def test_a_coroutine_that_waits_for_a_threads_future_gets_it() -> list[Any]:
    async def main() -> list[Any]:
        with ThreadPoolExecutor(1) as pool:
            blocked = pool.submit(time.sleep, 2).result()
            awaited = await asyncio.wrap_future(pool.submit(_slow, 3))
            in_pool = await asyncio.get_running_loop().run_in_executor(pool, _slow, 1)
            return [blocked, awaited, in_pool, now()]

    return asyncio.run(main())


def _slow(seconds: float) -> float:
    time.sleep(seconds)
    return seconds


@tells([3, 3.0], 3.0)
def test_a_thread_gives_a_loop_work_and_waits_for_it() -> list[Any]:
    loop = asyncio.new_event_loop()
    runner = threading.Thread(target=loop.run_forever)
    runner.start()
    job: Future[float] = asyncio.run_coroutine_threadsafe(_asleep(3), loop)
    with pytest.raises(TimeoutError):
        job.result(timeout=1)
    found = job.result()
    loop.call_soon_threadsafe(loop.stop)
    runner.join()
    loop.close()
    return [found, now()]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_loops_made_by_hand_are_the_worlds() -> None:
    def story() -> list[Any]:
        made: list[Any] = [
            asyncio.new_event_loop(),
            asyncio.SelectorEventLoop(),
            asyncio.get_event_loop_policy().new_event_loop(),
        ]
        seen = [type(loop) is VirtualLoop and loop.run_until_complete(_asleep(1)) for loop in made]
        for loop in made:
            loop.close()
        with asyncio.Runner() as runner:
            seen.append(runner.run(_asleep(1)))
        with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
            seen.append(runner.run(_asleep(1)))
        return [*seen, now()]

    assert told(story) == ([1, 1, 1, 1, 1, 5.0], 5.0)
    loop: Any = asyncio.SelectorEventLoop()
    assert not isinstance(loop, VirtualLoop)
    loop.close()


def test_a_loop_of_another_make_is_refused() -> None:
    class Special(asyncio.SelectorEventLoop):
        pass

    with Patches(), pytest.raises(Unsupported, match=r"the event loop .*Special"):
        a_world().run_program(Special)


def test_each_thread_has_its_own_current_loop() -> None:
    def story() -> list[Any]:
        seen: list[Any] = []
        ours = asyncio.new_event_loop()
        asyncio.set_event_loop(ours)

        def work() -> None:
            with pytest.raises(RuntimeError, match="no current event loop in thread"):
                asyncio.get_event_loop()
            mine = asyncio.new_event_loop()
            asyncio.set_event_loop(mine)
            seen.append(mine.run_until_complete(_asleep(1)))
            seen.append(asyncio.get_event_loop() is mine)
            mine.close()

        together(work, work)
        seen.append(asyncio.get_event_loop() is ours)
        ours.close()
        asyncio.set_event_loop(None)
        return [*seen, now()]

    seen, _ = told(story)
    assert seen == [1, 1, True, True, True, 1.0] or seen == [1, True, 1, True, True, 1.0]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="eager tasks came with Python 3.12")
def test_eager_tasks_begin_at_once() -> None:
    async def main() -> list[Any]:
        loop = asyncio.get_running_loop()
        loop.set_task_factory(getattr(asyncio, "eager_task_factory"))  # noqa: B009 - unknown to 3.11's types
        seen: list[Any] = []

        async def work() -> None:
            seen.append("begun")
            await asyncio.sleep(1)

        task = asyncio.create_task(work())
        seen.append("made")
        await task
        return [*seen, now()]

    assert told(lambda: asyncio.run(main())) == (["begun", "made", 1.0], 1.0)


def test_limits_of_time_end_at_their_moment() -> None:
    async def main() -> list[Any]:
        seen: list[Any] = []
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(_asleep(9), 1)
        seen.append(now())
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(2):
                await asyncio.sleep(9)
        seen.append(now())
        with pytest.raises(TimeoutError), anyio.fail_after(3):
            await anyio.sleep(9)
        seen.append(now())
        with anyio.move_on_after(4) as scope:
            await anyio.sleep(9)
        seen.append((scope.cancelled_caught, now()))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.to_thread(time.sleep, 9), 5)
        return [*seen, now()]

    seen, seconds = told(lambda: asyncio.run(main()))
    assert seen == [1.0, 3.0, 6.0, (True, 10.0), 15.0]
    assert seconds == 19.0  # the thread goes on, and the end of `run` waits for it, as in life


def test_tasks_that_are_done_at_once_come_in_the_order_in_which_they_were_made() -> None:
    async def main() -> list[Any]:
        tasks = [asyncio.create_task(_asleep(1), name=str(n)) for n in range(50)]
        done, _ = await asyncio.wait(tasks)
        left: list[str] = []

        async def cancelled(name: str) -> None:
            try:
                await asyncio.sleep(9)
            finally:
                left.append(name)

        with anyio.move_on_after(1):
            async with anyio.create_task_group() as group:
                for n in range(20):
                    group.start_soon(cancelled, str(n))
        return [[task.get_name() for task in done], left]

    (done, left), _ = told(lambda: asyncio.run(main()))
    assert done == [str(n) for n in range(50)]
    assert sorted(left, key=int) == [str(n) for n in range(20)]


def test_anyio_goes_to_threads_and_back() -> None:
    async def main() -> list[Any]:
        def in_thread() -> float:
            time.sleep(1)
            return anyio.from_thread.run(_asleep, 2)

        return [await anyio.to_thread.run_sync(in_thread), now()]

    assert told(lambda: anyio.run(main)) == ([2, 3.0], 3.0)


@tells(["well", [0.0, 1.0, 3.0, 7.0], "well", 14.0], 14.0)
def test_retries_of_tenacity_wait_in_virtual_time() -> list[Any]:
    def flaky(calls: list[float]) -> str:
        calls.append(now())
        if len(calls) < 4:
            raise OSError
        return "well"

    policy: dict[str, Any] = {"wait": tenacity.wait_exponential(multiplier=1), "stop": tenacity.stop_after_attempt(5)}
    calls: list[float] = []
    blocking = tenacity.Retrying(**policy)(flaky, calls)

    async def main() -> str:
        again: list[float] = []

        async def flaky_async() -> str:
            return flaky(again)

        return str(await tenacity.AsyncRetrying(**policy)(flaky_async))

    return [blocking, calls, asyncio.run(main()), now()]


def test_a_pipe_of_generators_is_closed_with_its_loop() -> None:
    closed: list[float] = []

    async def numbers() -> AsyncIterator[int]:
        try:
            while True:
                yield 1
                await asyncio.sleep(1)
        finally:
            closed.append(now())

    async def main() -> int:
        found = 0
        async for n in numbers():
            found += n
            if found == 3:
                break
        return found

    assert told(lambda: asyncio.run(main())) == (3, 2.0)
    assert closed == [2.0, 2.0]


def test_what_is_left_to_be_done_at_once_or_by_a_thread_is_done_before_a_loop_ends() -> None:
    done: list[str] = []

    def finish_late() -> None:
        time.sleep(5)
        done.append("late")

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.call_soon(loop.call_soon, done.append, "soon")
        loop.run_in_executor(None, finish_late)

    with Patches():
        a_world().run_program_async(main)
    assert done == ["soon", "late"]
