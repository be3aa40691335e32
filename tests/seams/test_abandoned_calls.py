"""A call that its caller gives up: the fault that held it was met, or the trial says nothing."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import chaoslab as lab
from chaoslab.core.events import FaultWitnessed

WAITS = [("latency", {"delay_s": 5.0}), ("timeout_before_effect", {}), ("lost_reply", {})]


def search(words: str) -> str:
    return f"tea for {words}"


async def find(words: str) -> str:
    return search(words)


def evidence(trial: lab.Trial) -> list[str]:
    return [event.evidence for _, event in trial.history.of(FaultWitnessed)]


def run(agent: Any, *faults: Any, read: Any = search) -> lab.Trial:
    return lab.run(agent, "x", reads=[read], faults=list(faults), twin=False, facts=["tea"])


@pytest.mark.parametrize(("fault", "params"), WAITS)
def test_a_caller_in_another_thread_that_waits_no_longer_met_the_fault(fault: str, params: dict[str, Any]) -> None:
    def agent(_: str) -> str:
        pool = ThreadPoolExecutor(1)
        try:
            return pool.submit(search, "x").result(timeout=1)
        except TimeoutError:
            return "tea, I guess"
        finally:
            pool.shutdown(wait=False)

    trial = run(agent, lab.inject(fault, "search", **params))
    assert (trial.outcome, len(evidence(trial))) == (lab.Outcome.CORRECT, 1)


@pytest.mark.parametrize(("fault", "params"), WAITS)
def test_a_coroutine_that_is_cancelled_met_the_fault_and_the_trial_goes_on(fault: str, params: dict[str, Any]) -> None:
    async def agent(_: str) -> str:
        try:
            return await asyncio.wait_for(find("x"), 1)
        except TimeoutError:
            await asyncio.sleep(9)
            return "tea, I guess"

    trial = run(agent, lab.inject(fault, "find", **params), read=find)
    assert (trial.outcome, len(evidence(trial))) == (lab.Outcome.CORRECT, 1)
    assert trial.seconds == 10


def test_a_fault_that_nobody_waited_for_makes_the_trial_invalid() -> None:
    def agent(_: str) -> str:
        threading.Thread(target=search, args=("x",), daemon=True).start()
        threading.Event().wait(0)
        return "tea"

    trial = run(agent, lab.inject("latency", "search", delay_s=5.0))
    assert evidence(trial) == []
    assert trial.outcome is lab.Outcome.INVALID
    assert trial.why == "latency was injected on search 1.1, and the call was over before its caller met it"
