"""Ids are valid, rise, hold the world's time, and are the same for the same seed, whoever makes them."""

import asyncio
import importlib
import random
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest
import uuid_utils
import uuid_utils.compat
from langchain_core.utils.uuid import uuid7 as uuid7_of_langchain
from langgraph.checkpoint.base import id as checkpoint_id

from chaoslab.worlds.virtual.machine.context import here
from chaoslab.worlds.virtual.patches import Patches, ids
from tests.worlds.virtual.patch_parts import NOW, run, take_out, world

rust = importlib.import_module("uuid_utils._uuid_utils")
SLEPT_S = 250.0
"""At that moment of the world each field of a time in an id ends in a 1."""
WALL = NOW + timedelta(seconds=SLEPT_S)

CASES: list[tuple[str, int, Callable[[], Any], tuple[Any, str]]] = [
    ("uuid1", 1, lambda: uuid.uuid1(), (uuid, "uuid1")),
    ("uuid1 of uuid_utils", 1, lambda: uuid_utils.uuid1(), (rust, "uuid1")),
    ("uuid1 of compat", 1, lambda: uuid_utils.compat.uuid1(), (rust, "uuid1")),
    ("uuid4 of uuid_utils", 4, lambda: uuid_utils.uuid4(), (rust, "uuid4")),
    ("uuid4 of compat", 4, lambda: uuid_utils.compat.uuid4(), (rust, "_uuid4_int")),
    ("uuid6 of checkpoints", 6, lambda: checkpoint_id.uuid6(clock_seq=-2), (checkpoint_id, "uuid6")),
    ("uuid6 of uuid_utils", 6, lambda: uuid_utils.uuid6(), (rust, "uuid6")),
    ("uuid6 of compat", 6, lambda: uuid_utils.compat.uuid6(), (rust, "uuid6")),
    ("uuid7 of uuid_utils", 7, lambda: uuid_utils.uuid7(), (rust, "uuid7")),
    ("uuid7 of compat", 7, lambda: uuid_utils.compat.uuid7(), (rust, "_uuid7_int")),
    ("uuid7 of langchain", 7, lambda: uuid7_of_langchain(), (rust, "_uuid7_int")),
]
REMEDIES = {f"{holder.__name__}.{name}": (holder, name) for *_, (holder, name) in CASES}


def three(make: Callable[[], Any]) -> Callable[[], list[Any]]:
    def work() -> list[Any]:
        time.sleep(SLEPT_S)
        return [make() for _ in range(3)]

    return work


def moment(made: uuid.UUID) -> datetime:
    """The time in it, as RFC 9562 lays it out."""
    bits = made.int
    if made.version == 7:
        return datetime.fromtimestamp((bits >> 80) / 1000, UTC)
    ticks = (bits >> 64 & 0xFFF) << 48 | (bits >> 80 & 0xFFFF) << 32 | bits >> 96
    if made.version == 6:
        ticks = (bits >> 80) << 12 | (bits >> 64 & 0xFFF)
    return datetime(1582, 10, 15, tzinfo=UTC) + timedelta(microseconds=ticks / 10)


def make_all(seeds: tuple[int, ...]) -> list[dict[str, list[Any]]]:
    with Patches():
        return [{name: world(seed).run_program(three(make)) for name, _, make, _ in CASES} for seed in seeds]


@pytest.fixture(scope="module")
def made() -> list[dict[str, list[Any]]]:
    return make_all((7, 7, 8))


@pytest.mark.parametrize(("name", "version", "make"), [(name, version, make) for name, version, make, _ in CASES])
def test_each_id_is_valid_and_holds_the_worlds_time(
    name: str, version: int, make: Callable[[], Any], made: list[dict[str, list[Any]]]
) -> None:
    first, again, other = (found[name] for found in made)
    assert first == again != other
    plain = [uuid.UUID(int=one.int) for one in first]
    assert [one.version for one in plain] == [version] * 3
    assert {one.variant for one in plain} == {uuid.RFC_4122}
    assert type(first[0]) is type(make())
    assert len(set(plain)) == 3
    if version != 4:
        assert all(WALL <= moment(one) < WALL + timedelta(milliseconds=1) for one in plain)
        assert sorted(plain, key=moment) == plain
    if version in (6, 7):
        assert sorted(plain) == plain


@pytest.mark.parametrize(
    "make",
    [make for name, _, make, _ in CASES if "checkpoints" not in name],
    ids=[c[0] for c in CASES if "checkpoints" not in c[0]],
)
def test_one_id_more_moves_no_jitter(make: Callable[[], Any]) -> None:
    """But for langgraph's, which draws from the global `random` as it does everywhere."""
    with Patches():
        assert world(7).run_program(lambda: make() and random.random()) == world(7).run_program(random.random)


@pytest.mark.parametrize("remedy", REMEDIES)
def test_without_its_remedy_no_id_repeats(remedy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    take_out(monkeypatch, REMEDIES[remedy])
    first, again = make_all((7, 7))
    for name, _, _, needed in CASES:
        assert (first[name] != again[name]) is (needed == REMEDIES[remedy]), name


def test_the_network_card_is_the_same_everywhere_and_says_that_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (
        run(lambda: uuid.getnode()) == run(lambda: uuid_utils.getnode()) == run(lambda: uuid.uuid1().node) == ids.NODE
    )
    assert ids.NODE >> 40 & 1
    take_out(monkeypatch, (uuid, "getnode"))
    outside = uuid.getnode()
    assert run(lambda: uuid.getnode()) == outside != ids.NODE


def test_what_the_caller_says_stands_in_the_id() -> None:
    assert run(lambda: (made := uuid.uuid1(7, 9), made.node, made.clock_seq)[1:]) == (7, 9)
    by_six = uuid.UUID(
        int=run(lambda: ids._make_v6(ids.get_uuid_generator(cast(Any, here.world)), 7, 9))
    )  # which Python has from 3.14 on
    assert (by_six.version, by_six.node, by_six.clock_seq) == (6, 7, 9)
    then = datetime(2001, 2, 3, 4, 5, 6, 789000, tzinfo=UTC)
    seconds, nanos = int(then.timestamp()), 789_000_000
    assert moment(run(lambda: uuid7_of_langchain(seconds * 10**9 + nanos))) == then
    assert moment(uuid.UUID(int=run(lambda: uuid_utils.uuid6(5, seconds)).int)) == then.replace(microsecond=0)


def test_a_counter_that_is_used_up_moves_the_time_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def work() -> list[uuid.UUID]:
        monkeypatch.setattr(ids, "_COUNTER", (uuid_utils.compat.uuid7().int >> 64 & 0xFFF) << 30)
        assert here.world is not None
        ids.get_uuid_generator(here.world)._counter = ids._COUNTER - 1
        return [uuid_utils.compat.uuid7(), uuid_utils.compat.uuid7()]

    first, second = run(work)
    assert moment(first) == NOW + timedelta(milliseconds=1)
    assert first < second


def test_names_make_the_ids_that_they_always_made() -> None:
    known = uuid.uuid5(uuid.NAMESPACE_DNS, "python.org")
    assert run(lambda: uuid.uuid5(uuid.NAMESPACE_DNS, "python.org")) == known
    assert run(lambda: uuid_utils.compat.uuid5(uuid.NAMESPACE_DNS, "python.org")) == known


def conversation() -> list[Any]:
    """Every id and time that two turns with a checkpointed agent leave behind."""
    from langchain.agents import create_agent
    from langchain_core.language_models import GenericFakeChatModel
    from langgraph.checkpoint.memory import InMemorySaver

    async def talk() -> list[Any]:
        model = GenericFakeChatModel(messages=iter(["one", "two"]))
        agent: Any = create_agent(model, [], checkpointer=InMemorySaver())
        config = {"configurable": {"thread_id": "1"}}
        await agent.ainvoke({"messages": [("user", "hello")]}, config)
        await asyncio.sleep(60)
        answer = await agent.ainvoke({"messages": [("user", "again")]}, config)
        found = [(m.id, m.content) for m in answer["messages"]]
        async for state in agent.aget_state_history(config):
            found.append((state.config["configurable"]["checkpoint_id"], state.created_at))
        return found

    with Patches():
        return world().run_program_async(talk)


def test_a_checkpointed_conversation_leaves_the_same_ids_and_times(monkeypatch: pytest.MonkeyPatch) -> None:
    found = conversation()
    assert found == conversation()
    messages, states = found[:4], found[4:]
    assert [text for _, text in messages] == ["hello", "one", "again", "two"]
    assert len(states) == 6
    for made, created in states:
        assert NOW <= datetime.fromisoformat(created) <= NOW + timedelta(seconds=61)
        assert NOW <= moment(uuid.UUID(made)) <= NOW + timedelta(seconds=61)
    take_out(monkeypatch, (checkpoint_id, "uuid6"))
    assert conversation() != conversation()


def test_langchain_has_its_ids_from_where_they_are_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    found = conversation()
    take_out(monkeypatch, (rust, "_uuid7_int"))
    assert found != conversation()


@pytest.mark.parametrize(
    ("make", "ones", "zeros"),
    [
        (lambda made: made.make_v4(), "ffffffff-ffff-4fff-bfff-ffffffffffff", "00000000-0000-4000-8000-000000000000"),
        (
            lambda made: made.make_label_v4(),
            "ffffffff-ffff-4fff-bfff-ffffffffffff",
            "00000000-0000-4000-8000-000000000000",
        ),
        (lambda made: made.make_v7(0), "00000000-0000-7fff-bfff-ffffffffffff", "00000000-0000-7000-8000-000000000000"),
        (
            lambda made: made.make_v7(1, 2_999_999),
            "00000000-03ea-7fff-bfff-ffffffffffff",
            "00000000-03ea-7000-8000-000000000000",
        ),
        (lambda made: made.make_v7(), "00000000-0003-77ff-bfff-ffffffffffff", "00000000-0003-7000-8000-000000000000"),
        (
            lambda made: (made.make_v7(), made.make_v7())[1],
            "00000000-0003-7800-8000-0000ffffffff",
            "00000000-0003-7000-8000-000100000000",
        ),
        (
            lambda made: made.make_v1_or_v6(1, 7, None, 0),
            "13814000-1dd2-11b2-bfff-000000000007",
            "13814000-1dd2-11b2-8000-000000000007",
        ),
    ],
)
def test_every_bit_that_is_left_to_chance_is_drawn(make: Callable[[Any], int], ones: str, zeros: str) -> None:
    def of(draw: Callable[[int], int]) -> str:
        made = object.__new__(ids.UuidGenerator)
        vars(made).update(
            _world=SimpleNamespace(time_ns=lambda: 3_999_999), _last_ticks={}, _last_ms=-1, _counter=-1,
            _chance=SimpleNamespace(label_random=(drawn := SimpleNamespace(getrandbits=draw)), entropy_random=drawn),
        )  # fmt: skip
        return str(uuid.UUID(int=make(made)))

    assert (of(lambda bits: (1 << bits) - 1), of(lambda _: 0)) == (ones, zeros)
