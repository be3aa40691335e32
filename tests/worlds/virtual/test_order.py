"""`asyncio.Future` and `asyncio.Task` are classes as ever while worlds run: to make, to recognise and to build upon."""

import asyncio
import sys
from typing import Any

import pytest

from chaoslab.worlds.virtual.network import _loop as loop
from tests.worlds.virtual.patch_parts import in_place, world

stand_ins = pytest.fixture(scope="module", autouse=True)(in_place)

REAL: tuple[Any, Any] = (asyncio.Future, asyncio.Task)  # in a name of their own they would be exchanged


async def made() -> tuple[Any, Any, Any]:
    task = asyncio.Task(asyncio.sleep(0, "slept"))
    created = asyncio.create_task(asyncio.sleep(0))
    assert await task == "slept"
    await created
    return asyncio.Future(), task, created


def test_in_a_world_they_are_its_loops_and_recognised_by_either_name() -> None:
    future, task, created = world().run_program_async(made)
    assert (type(future), type(task), type(created)) == (loop.Future, loop.Task, loop.Task)
    kind: Any
    for kind in (asyncio.Future, REAL[0]):
        assert isinstance(future, kind)
        assert isinstance(task, kind)
        assert not isinstance("a word", kind)
    for kind in (asyncio.Task, REAL[1]):
        assert (isinstance(future, kind), isinstance(task, kind)) == (False, True)


def test_a_task_made_by_hand_is_counted_by_its_loop() -> None:
    assert [world().run_program_async(made)[1].get_name() for _ in range(2)] == ["Task-2"] * 2


def test_outside_they_are_the_real_ones() -> None:
    future, task, created = asyncio.run(made())
    assert (type(future), type(task), type(created)) == (REAL[0], REAL[1], REAL[1])
    assert isinstance(future, asyncio.Future)
    assert isinstance(task, asyncio.Task)


def test_a_class_made_of_them_is_made_of_the_real_one() -> None:
    class Answer(asyncio.Future[str]):
        pass

    class Counted(asyncio.Future):  # type: ignore[type-arg]
        def __init__(self, *, start: int) -> None:
            asyncio.Future.__init__(self)
            self.count = start

    assert Counted.__mro__[1] is Answer.__mro__[1] is REAL[0]
    assert issubclass(Counted, asyncio.Future)
    assert issubclass(asyncio.Task, asyncio.Future)
    assert not issubclass(Counted, asyncio.Task)

    async def counted() -> tuple[int, Any]:
        future, answer = Counted(start=3), Answer()
        answer.set_result("kept")
        return future.count, await answer

    assert world().run_program_async(counted) == (3, "kept")
    assert asyncio.run(counted()) == (3, "kept")


@pytest.mark.skipif(sys.version_info < (3, 12), reason="there are eager tasks from Python 3.12 on")
def test_eager_tasks_are_the_loops_too() -> None:
    async def eager() -> Any:
        factory: Any = vars(asyncio)["eager_task_factory"]
        asyncio.get_running_loop().set_task_factory(factory)
        task = asyncio.create_task(asyncio.sleep(0))
        await task
        return task

    assert type(world().run_program_async(eager)) is loop.Task
