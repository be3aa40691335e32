"""So many requests may be under way at once, and no more."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import Any

import httpx
import pytest

import chaoslab as lab
from chaoslab.core.context import TrialContext
from chaoslab.core.events import FaultWitnessed
from chaoslab.core.exchange import Failure, Reply
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
    with pytest.raises(StopIteration):
        first.send(answer(1))
    assert not meet(ConcurrencyLimit(1), memory=memory).injected


def test_a_request_that_fails_makes_room_too() -> None:
    memory: dict[str, Any] = {}
    first = ConcurrencyLimit(1).flow(CALL, TrialContext(memory=memory))
    next(first)
    with pytest.raises(Failure):
        first.throw(Failure("reset"))
    assert not meet(ConcurrencyLimit(1), memory=memory).injected


def test_a_429_of_the_services_own_is_no_witness() -> None:
    met = meet(ConcurrencyLimit())
    assert (met.injected, met.evidence) == (False, None)
    seen = replace(met.seen, changed_reply=Reply(429, {}, b"a"), reply=Reply(429, {}, b"b"))
    assert ConcurrencyLimit().witnessed(seen) is None


async def search(number: int) -> int:
    await asyncio.sleep(1)
    return number


def test_a_function_that_is_called_many_times_at_once_is_refused_beyond_the_limit() -> None:
    async def agent(_: str) -> list[Any]:
        found = await asyncio.gather(*(search(number) for number in range(4)), return_exceptions=True)
        return [*(getattr(each, "status", each) for each in found), await search(9)]

    trial = lab.run(agent, "go", reads=[search], faults=[lab.inject("concurrency_limit", "search", most=2)])
    assert trial.answer == [0, 1, 429, 429, 9]
    assert [event.fault for _, event in trial.history.of(FaultWitnessed)] == ["concurrency_limit"] * 2


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
