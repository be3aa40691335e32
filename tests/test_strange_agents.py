"""Agents as people write them.

Promises in place of answers, clients and clocks that outlive a trial, errors that cannot be told.
"""

import asyncio
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import requests
import tenacity
import urllib3

import chaoslab as lab
from chaoslab.lab.recorded_run import Unrepeatable, read_recorded_run
from tests.waiting import DEADLINE_S

done: list[str] = []


def refund(order: str) -> str:
    done.append(order)
    return "refunded"


def weather(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:  # noqa: ARG001
    start_response("200 OK", [("Content-Length", "4")])
    return [b"warm"]


SESSION, CLIENT, POOL, ASYNC = requests.Session(), httpx.Client(), urllib3.PoolManager(), httpx.AsyncClient()
URL = "http://weather/"


async def _with_async_client(_: str) -> str:
    return (await ASYNC.get(URL)).text


@pytest.mark.parametrize(
    "agent",
    [
        lambda _: SESSION.get(URL).text,
        lambda _: CLIENT.get(URL).text,
        lambda _: POOL.request("GET", URL).data.decode(),
        _with_async_client,
    ],
    ids=["requests", "httpx", "urllib3", "httpx, async"],
)
def test_a_client_may_outlive_a_trial(agent: Any) -> None:
    """Its connections look as if the other side had closed them, and it makes new ones."""
    trials = list(lab.run_many(agent, "go", trials=3, services={"weather": weather}))
    assert [(trial.answer, trial.outcome) for trial in trials] == [("warm", lab.Outcome.CORRECT)] * 3


class Patient:
    """Keeps its clock where no module knows it."""

    def __init__(self, sleep: Callable[[float], None] = time.sleep) -> None:
        self.sleep, self.clock = sleep, time.monotonic

    def __call__(self, _: str) -> float:
        began = self.clock()
        self.sleep(60)
        return round(self.clock() - began, 3)


TABLE = {"sleep": time.sleep}


def _closed_over(sleep: Callable[[float], None]) -> Callable[[str], None]:
    return lambda _: sleep(60)


def _of_a_class() -> Callable[[str], Any]:
    class Local:
        clock: Any = time.monotonic
        sleep: Any = time.sleep

        def __call__(self, _: str) -> Any:
            began = self.clock()
            self.sleep(60)
            return round(self.clock() - began, 3)

    return Local()


@tenacity.retry(wait=tenacity.wait_fixed(30), stop=tenacity.stop_after_attempt(3), sleep=time.sleep)
def _retried(_: str) -> None:
    raise ValueError("again")


@pytest.mark.parametrize(
    "agent",
    [Patient(), lambda _: TABLE["sleep"](60), _closed_over(time.sleep), _of_a_class(), _retried],
    ids=["an attribute", "a dict", "a closure", "a class", "tenacity"],
)
def test_a_clock_that_the_agent_keeps_is_the_worlds_and_its_own_again_afterwards(agent: Any) -> None:
    began = time.monotonic()
    trial = lab.run(agent, "go", twin=False)
    assert trial.seconds == 60
    assert trial.answer in (None, 60)
    assert time.monotonic() - began < 60  # as long as it would really sleep
    assert TABLE["sleep"] is time.sleep
    assert Patient().sleep is time.sleep


async def _later(_: str) -> str:
    await asyncio.sleep(1)
    return "later"


def _streams(_: str) -> Iterator[str]:
    yield "Order 17 is "
    yield refund("17")


async def _streams_later(_: str) -> AsyncIterator[str]:
    yield "Order 17 is "
    await asyncio.sleep(0)
    yield refund("17")


async def _promises_a_stream(prompt: str) -> AsyncIterator[str]:
    return _streams_later(prompt)


def _reports(_: str) -> Iterator[dict[str, str]]:
    yield {"step": "look up"}
    yield {"step": refund("17")}


def _ends_with_its_answer(_: str) -> Generator[str, None, str]:
    yield "…"
    return f"Order 17 is {refund('17')}"


@pytest.mark.parametrize("world", ["virtual", "local"])
def test_a_promised_answer_is_fetched_and_a_streamed_one_is_put_together(world: Any) -> None:
    async def soon(_: str) -> str:
        await asyncio.sleep(0)
        return "soon"

    assert lab.run(lambda prompt: soon(prompt), "go", world=world).answer == "soon"
    streams: list[Any] = [
        _streams, _streams_later, _promises_a_stream, lambda prompt: _streams_later(prompt), _ends_with_its_answer,
    ]  # fmt: skip
    for agent in streams:
        trial = lab.run(agent, "go", world=world, tools=[refund])
        assert (trial.answer, trial.effects) == ("Order 17 is refunded", [{"effect": "refund", "order": "17"}])
    assert lab.run(_reports, "go", world=world).answer == [{"step": "look up"}, {"step": "refunded"}]
    assert lab.run(lambda prompt: _later(prompt), "go").seconds == 1


class Untold(Exception):
    def __str__(self) -> str:
        raise IndexError("told wrongly")


def test_what_cannot_be_told_fails_its_trial_and_not_whoever_tries_it() -> None:
    def raises(_: str) -> None:
        raise Untold

    async def exits(_: str) -> None:
        async def task() -> None:
            sys.exit(3)

        await asyncio.gather(task())

    assert isinstance(lab.run(raises, "go", anyway=True).error, Untold)
    assert isinstance(lab.run(exits, "go", anyway=True).error, SystemExit)
    half = lab.run(lambda _: refund("\ud800"), "\ud800", tools=[refund])
    assert (half.outcome, half.effects) == (lab.Outcome.CORRECT, [{"effect": "refund", "order": "\ud800"}])


def test_an_effect_that_asyncio_would_wait_for_counts_and_one_of_a_thread_that_was_left_does_not() -> None:
    async def gives_up(_: str) -> str:
        given_up = threading.Event()

        def slowly() -> None:
            given_up.wait()
            time.sleep(0.01)
            refund("17")

        try:
            await asyncio.wait_for(asyncio.to_thread(slowly), 0.1)
        except TimeoutError:
            given_up.set()
            return "ended"
        return "waited"

    def leaves(_: str) -> str:
        def for_ever() -> None:
            try:
                time.sleep(1e6)
            finally:
                time.sleep(7)
                refund("late")

        threading.Thread(target=for_ever, daemon=True).start()
        time.sleep(1)
        return "left"

    for world in ("virtual", "local"):
        trial = lab.run(gives_up, "go", tools=[refund], effects=[{"effect": "refund"}], world=world)
        assert (trial.answer, trial.outcome) == ("ended", lab.Outcome.CORRECT)
    left = lab.run(leaves, "go", tools=[refund], effects=[])
    assert (left.outcome, left.seconds, left.effects) == (lab.Outcome.UNKNOWN, 1, [])  # it would refund yet


def test_executors_of_asyncio_are_as_wide_as_they_are() -> None:
    async def agent(_: str) -> str:
        from concurrent.futures import ThreadPoolExecutor

        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        await asyncio.gather(*(asyncio.to_thread(time.sleep, 2) for _ in range(3)))
        return await asyncio.to_thread(lambda: threading.current_thread().name)

    trial = lab.run(agent, "go")
    assert (trial.seconds, trial.answer) == (6, "ThreadPoolExecutor-0_0")


def test_of_two_threads_one_runs_its_trials_and_the_other_is_told() -> None:
    """And nothing is left exchanged, whoever was first."""
    before = time.sleep, asyncio.new_event_loop
    told: list[Any] = []
    start = threading.Barrier(4)

    def tries() -> None:
        start.wait(DEADLINE_S)
        try:
            told.append([trial.seconds for trial in lab.run_many(lambda _: time.sleep(60), "go", trials=20)])
        except RuntimeError as error:
            told.append(str(error))

    threads = [threading.Thread(target=tries) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE_S)
    assert [60.0] * 20 in told
    assert all(one == [60.0] * 20 or "another trial is under way" in one for one in told)
    assert (time.sleep, asyncio.new_event_loop) == before


def test_an_answer_that_no_other_process_can_have_is_said(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"what came of it cannot be sent from one process to another.*jobs=1"):
        list(lab.run_many(lambda _: lambda: 3, "go", trials=2, jobs=2))
    lab.run(lambda _: "done", "go", logs=tmp_path)
    with pytest.raises(Unrepeatable, match=r"was made from Python \(lab.run\)"):
        read_recorded_run("latest", logs=tmp_path)


def test_what_made_a_run_is_named_where_it_cannot_be_replayed(tmp_path: Path) -> None:
    made = lab.scenario("nothing").agent(lambda _: "done").ask("go")
    made.accept("correct").run(trials=1, logs=tmp_path)
    said = r"is of the scenario 'nothing', .*: run a trial again with chaoslab test --trial"
    with pytest.raises(Unrepeatable, match=said):
        read_recorded_run("latest", logs=tmp_path)
    made.accept("failed").run(trials=1, logs=tmp_path / "bad")
    with pytest.raises(Unrepeatable, match=r"run a trial again as in \.test\(trial=1\)"):
        read_recorded_run("latest", logs=tmp_path / "bad")


class KindWithoutHash(type):
    """Says when its classes are equal, and no more, so they have no hash."""

    def __eq__(cls, other: object) -> bool:
        return cls is other


class Odd(metaclass=KindWithoutHash):
    held: Any = None


ODD = Odd.held = Odd()
"""Found by each search of this module and of its classes."""


@pytest.mark.parametrize("world", ["virtual", "local"])
def test_a_value_whose_class_has_no_hash_is_passed_by(world: Any) -> None:
    with pytest.raises(TypeError):
        hash(Odd)
    trial = lab.run(lambda _: f"{type(ODD).__name__} {refund('17')}", "go", tools=[refund], world=world, twin=False)
    assert (trial.answer, trial.error) == (f"Odd {refund('17')}", None)
