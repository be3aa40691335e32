"""Calls that are made at the same moment begin in the order of asking, or in one that named dice draw."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

import httpx
import pytest

import chaoslab as lab
from chaoslab.core.events import CallsOrdered
from chaoslab.worlds.virtual.patches import Patches
from chaoslab.worlds.virtual.world import CallTurns
from tests import waiting
from tests.worlds.virtual.machine_parts import a_world
from tests.worlds.virtual.patch_parts import in_place

stand_ins = pytest.fixture(scope="module", autouse=True)(in_place)

began: list[int] = []


async def price(order: int) -> int:
    """The price of an order."""
    began.append(order)
    await asyncio.sleep(0.5)
    return order


async def stock(order: int) -> int:
    """The stock of an order."""
    began.append(order)
    return order


def refund(order: int) -> int:
    """Refunds an order."""
    began.append(order)
    return order


async def together(_: str) -> list[int]:
    began.clear()
    await asyncio.gather(price(1), stock(2), price(3), stock(4), stock(5))
    return list(began)


def in_threads(_: str) -> list[int]:
    began.clear()
    with ThreadPoolExecutor(5) as pool:
        list(pool.map(refund, range(1, 6)))
    return list(began)


def one_after_the_other(_: str) -> list[int]:
    began.clear()
    for number in range(1, 6):
        refund(number)
    return list(began)


async def over_http(_: str) -> list[int]:
    async with httpx.AsyncClient(base_url="http://shop") as client:
        await asyncio.gather(*(client.get(f"/orders/{number}") for number in range(1, 6)))
    return []


AGENTS: dict[Callable[[str], Any], dict[str, Any]] = {
    together: {"reads": [price, stock]},
    in_threads: {"tools": [refund]},
    one_after_the_other: {"tools": [refund]},
}
ASKED = [1, 2, 3, 4, 5]


def answers(agent: Callable[[str], Any], **options: Any) -> list[Any]:
    return [trial.answer for trial in lab.run_many(agent, "x", trials=6, twin=False, **AGENTS[agent], **options)]


@pytest.mark.parametrize("agent", AGENTS)
def test_by_default_it_is_the_order_of_asking(agent: Callable[[str], Any]) -> None:
    assert answers(agent) == [ASKED] * 6


@pytest.mark.parametrize("agent", [together, in_threads])
def test_seeded_each_trial_has_an_order_of_its_own_and_the_same_again(agent: Callable[[str], Any]) -> None:
    found = answers(agent, order="seeded")
    assert [sorted(each) for each in found] == [ASKED] * 6
    assert len({tuple(each) for each in found}) > 3
    assert (answers(agent, order="seeded"), answers(agent, order="seeded", seed=2) != found) == (found, True)


def test_calls_that_wait_for_each_other_keep_their_order() -> None:
    assert answers(one_after_the_other, order="seeded") == [ASKED] * 6
    trial = lab.run(one_after_the_other, "x", tools=[refund], order="seeded")
    assert not list(trial.history.find_events(CallsOrdered))


def test_the_log_tells_the_order_and_the_twin_has_that_of_asking() -> None:
    trial = lab.run(together, "x", reads=[price, stock], order="seeded")
    names = {1: "price 1", 2: "stock 1", 3: "price 2", 4: "stock 2", 5: "stock 3"}
    drawn: Any = trial.answer
    assert [event.calls for _, event in trial.history.find_events(CallsOrdered)] == [[names[each] for each in drawn]]
    assert f"order    {', '.join(names[each] for each in drawn)}" in trial.story()
    assert trial.twin is not None
    assert trial.twin.answer == ASKED
    assert not list(trial.twin.history.find_events(CallsOrdered))


def test_requests_to_services_are_ordered_too() -> None:
    asked: list[int] = []

    def shop(request: Any) -> dict[str, str]:
        asked.append(int(request.path[-1]))
        return {}

    for order in ("asked", "seeded"):
        lab.run(over_http, "x", services={"shop": shop}, order=order, twin=False)
    assert (asked[:5], sorted(asked[5:]), asked[5:] != ASKED) == (ASKED, ASKED, True)


# The moment at which a trial begins.


def clocks(_: str) -> list[str]:
    now = datetime.now(UTC)
    time.sleep(3)
    berlin = ZoneInfo("Europe/Berlin")
    return [moment.astimezone(berlin).isoformat(timespec="seconds") for moment in (now, datetime.now(UTC))]


@pytest.mark.parametrize(
    ("now", "told"),
    [
        ("2026-12-31T22:59:58Z", ["2026-12-31T23:59:58+01:00", "2027-01-01T00:00:01+01:00"]),
        ("2026-10-25T02:59:58+02:00", ["2026-10-25T02:59:58+02:00", "2026-10-25T02:00:01+01:00"]),
        ("2026-03-29T00:59:58Z", ["2026-03-29T01:59:58+01:00", "2026-03-29T03:00:01+02:00"]),
        (None, ["2026-06-01T11:00:00+02:00", "2026-06-01T11:00:03+02:00"]),
    ],
)
def test_a_trial_begins_at_the_moment_that_is_given(now: str | None, told: list[str]) -> None:
    assert lab.run(clocks, "x", now=now).answer == told


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"now": "soon"}, "now is 'soon': it should be a moment like 2026-06-01T09:00:00Z"),
        ({"now": "now"}, "now is 'now': it should be a moment that is the same in each run"),
        ({"now": 2026}, "now is 2026: it should be a text such as"),
        ({"order": "random"}, "order is 'random': it should be 'asked', 'seeded', or calls"),
        ({"order": "seeded", "world": "local"}, "order= needs world='virtual'"),
        ({"now": "2026-06-01T09:00:00Z", "world": "local"}, "now= needs world='virtual'"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_one_line(options: dict[str, Any], line: str) -> None:
    with pytest.raises((ValueError, TypeError), match=line):
        lab.run(clocks, "x", **options)


@pytest.mark.parametrize(
    ("stated", "began"),
    [
        ({}, ["a 1", "b", "a 2"]), ({1: ["b", "a 2", "a 1"]}, ["b", "a 2", "a 1"]), ({1: ["a 2"]}, ["a 2", "a 1", "b"]),
        ({2: ["b"]}, ["a 1", "b", "a 2"]), ({1: ["b", "c", "a 1"]}, ["b", "a 1", "a 2"]),
    ],
)  # fmt: skip
def test_calls_of_one_moment_begin_as_it_is_stated_for_it(stated: dict[int, list[str]], began: list[str]) -> None:
    told, order = list[list[str]](), list[str]()

    def main() -> None:
        turns = CallTurns(world.machine, stated, lambda names: told.append(list(names)))

        def call(name: str, number: str) -> None:
            turns.wait_for_turn(name)
            order.append(number)

        waiting.together(partial(call, "a", "a 1"), partial(call, "b", "b"), partial(call, "a", "a 2"))
        turns.wait_for_turn("alone")  # which has nobody to take turns with

    world = a_world()
    CallTurns(world.machine, stated, lambda _: None).wait_for_turn("who is no thread of it")
    with Patches():
        world.run_program(main)
    assert (told, order) == ([began], began)
