"""So many requests may be under way at once, and no more."""

import asyncio
import time
from dataclasses import replace
from typing import Any

import httpx
import pytest

import chaoslab as lab
from chaoslab.core.events import CallFinished, FaultWitnessed
from chaoslab.core.exchange import Failure, TrialContext, Wait
from chaoslab.faults.budget.concurrency_limit import ConcurrencyLimit
from tests.faults.fault_parts import CALL, WORDS, answer, meet


def test_one_more_is_refused_in_the_targets_own_words_and_room_comes_back() -> None:
    memory: dict[str, Any] = {}
    first = ConcurrencyLimit(1).flow(CALL, TrialContext(memory=memory))
    assert next(first) is CALL
    refused = meet(ConcurrencyLimit(1), memory=memory, call=replace(CALL, errors=WORDS))
    assert refused.reply is not None
    assert (refused.reply.status, refused.reply.value) == (429, {"busy": True})
    assert refused.evidence == "the call was refused, with 1 others under way"
    assert isinstance(first.send(answer(1)), Wait)
    assert meet(ConcurrencyLimit(1), memory=memory).injected
    with pytest.raises(StopIteration):
        next(first)
    assert not meet(ConcurrencyLimit(1), memory=memory).injected


def test_a_request_that_fails_makes_room_too() -> None:
    memory: dict[str, Any] = {}
    first = ConcurrencyLimit(1).flow(CALL, TrialContext(memory=memory))
    next(first)
    with pytest.raises(Failure):
        first.throw(Failure("reset"))
    assert not meet(ConcurrencyLimit(1), memory=memory).injected


async def search(number: int) -> int:
    await asyncio.sleep(1)
    return number


def test_a_function_that_is_called_many_times_at_once_is_refused_beyond_the_limit() -> None:
    async def agent(_: str) -> list[Any]:
        found = await asyncio.gather(*(search(number) for number in range(4)), return_exceptions=True)
        return [*(getattr(each, "status", each) for each in found), await search(9)]

    trial = lab.run(agent, "go", reads=[search], faults=[lab.inject("concurrency_limit", "search", most=2)])
    assert trial.answer == [0, 1, 429, 429, 9]
    assert [event.fault for _, event in trial.history.find_events(FaultWitnessed)] == ["concurrency_limit"] * 2


def test_a_service_refuses_what_comes_while_it_is_busy_and_nothing_in_a_row() -> None:
    def shop(request: Any) -> dict[str, Any]:
        time.sleep(1)
        return {"path": request.path}

    async def agent(_: str) -> list[int]:
        async with httpx.AsyncClient(timeout=30) as client:
            first = await asyncio.gather(*(client.get(f"http://shop/{number}") for number in range(3)))
            last = await client.get("http://shop/9")
            return [*sorted(each.status_code for each in first), last.status_code]

    fault = lab.inject("concurrency_limit", "shop", most=2)
    trial = lab.run(agent, "go", services={"shop": shop}, faults=[fault], twin=False)
    assert trial.answer == [200, 200, 429, 200], trial.error


MODEL = "api.openai.com"


def asked(client: httpx.AsyncClient, words: str) -> Any:
    said = {"model": "m", "messages": [{"role": "user", "content": words}]}
    return client.post(f"http://{MODEL}/v1/chat/completions", json=said)


def limited(agent: Any) -> lab.Trial:
    fault = lab.inject("concurrency_limit", MODEL)
    return lab.run(agent, "go", services={MODEL: lab.offline_model()}, models=[MODEL], faults=[fault], twin=False)


def test_requests_of_one_moment_overlap_though_the_model_answers_at_once() -> None:
    async def agent(_: str) -> list[list[int]]:
        async with httpx.AsyncClient(timeout=30) as client:
            new = await asyncio.gather(*(asked(client, f"What is {n} plus 4?") for n in range(3)))
            kept = await asyncio.gather(*(asked(client, f"What is {n} plus 5?") for n in range(2)))
            alone = [await asked(client, f"What is {n} plus 6?") for n in range(3)]
        return [[each.status_code for each in answers] for answers in (new, kept, alone)]

    trial = limited(agent)
    assert trial.answer == [[200, 429, 429], [200, 429], [200, 200, 200]], trial.error


def test_a_request_beside_one_on_a_connection_that_is_there_overlaps_too() -> None:
    async def agent(_: str) -> list[int]:
        async with httpx.AsyncClient(timeout=30) as client:
            await asked(client, "What is 1 plus 1?")
            return [each.status_code for each in await asyncio.gather(*(asked(client, f"{n} + 4?") for n in range(2)))]

    assert limited(agent).answer == [200, 429]


def test_a_request_that_its_client_cancelled_has_not_timed_out() -> None:
    async def agent(_: str) -> str:
        async with httpx.AsyncClient(timeout=30) as client:
            for status in asyncio.as_completed([asked(client, "What is 1 plus 1?"), asked(client, "1 + 2?")]):
                return str((await status).status_code)
        return ""

    trial = limited(agent)
    assert trial.answer == "429"
    found = sorted(event.error or "" for _, event in trial.history.find_events(CallFinished))
    assert found == ["Too Many Requests", "cancelled"]


def test_a_request_that_its_client_gave_up_has_timed_out() -> None:
    def slow(_: Any) -> dict[str, Any]:
        time.sleep(5)
        return {}

    async def agent(_: str) -> str:
        async with httpx.AsyncClient() as client:
            with pytest.raises(httpx.ReadTimeout):
                await client.get("http://shop/1", timeout=1)
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(client.get("http://shop/2", timeout=9), 1)
        with pytest.raises(httpx.ReadTimeout):
            httpx.get("http://shop/3", timeout=1)
        return "late"

    trial = lab.run(agent, "go", services={"shop": slow}, twin=False)
    assert [event.error for _, event in trial.history.find_events(CallFinished)] == ["timed_out"] * 3, trial.error
