"""A call that its caller gives up: the fault that held it was met, or the trial says nothing."""

import asyncio
import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import chaoslab as lab
from chaoslab.analysis.assertions import FinishedTrial
from chaoslab.analysis.assertions.ends import EveryFaultWitnessed
from chaoslab.analysis.measures.faults import Unmet
from chaoslab.core.events import FaultHealed, FaultWitnessed
from tests.measure_parts import unmet

WAITS = [("latency", {"delay_s": 5.0}), ("timeout_before_effect", {}), ("lost_reply", {})]


def search(words: str) -> str:
    return f"tea for {words}"


async def find(words: str) -> str:
    return search(words)


def evidence(trial: lab.Trial) -> list[str]:
    return [event.evidence for _, event in trial.history.find_events(FaultWitnessed)]


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


def test_a_call_that_goes_on_after_the_answer_meets_its_fault() -> None:
    def agent(_: str) -> str:
        threading.Thread(target=search, args=("x",), daemon=True).start()
        threading.Event().wait(0)
        return "tea"

    trial = run(agent, lab.inject("latency", "search", delay_s=5.0))
    assert evidence(trial) == ["took 5.000 s, at least 5.000 s were armed"]
    assert (trial.outcome, trial.seconds) == (lab.Outcome.CORRECT, 0)


async def slowly(words: str) -> dict[str, str]:
    await asyncio.sleep(0.1)
    return {"found": search(words)}


async def impatient(_: str) -> str:
    with contextlib.suppress(TimeoutError, ConnectionError):
        await asyncio.wait_for(slowly("x"), 0.25)
    return "tea"


@pytest.mark.parametrize("masked", ["empty_response", "malformed_json", "tool_error", "redelivery"])
def test_a_fault_that_another_one_kept_from_a_caller_who_gave_up_is_masked(masked: str) -> None:
    trial = run(impatient, lab.inject("lost_reply", "slowly"), lab.inject(masked, "slowly"), read=slowly)
    assert [event.fault for _, event in trial.history.find_events(FaultWitnessed)] == ["lost_reply"]
    assert trial.outcome is lab.Outcome.CORRECT
    assert [(event.fault, event.masked_by) for _, event in trial.history.find_events(FaultHealed)] == [
        (masked, "lost_reply")
    ]
    assert unmet(trial.history) == [Unmet(masked, "its call was cancelled first", 1)]
    assert EveryFaultWitnessed().check(FinishedTrial(trial.history, trial.key, trial.verdict)) is None


@pytest.mark.parametrize("met", [{}, {"latency": 0.02}], ids=["alone", "beside another"])
def test_a_fault_that_none_held_back_and_nobody_met_makes_the_trial_invalid(met: dict[str, float]) -> None:
    """The function works for the second time when its caller gives it up; the latency that was met was over then."""

    async def agent(_: str) -> str:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(slowly("x"), 0.18)
        return "tea"

    short = [lab.inject(name, "slowly", delay_s=delay_s) for name, delay_s in met.items()]
    trial = run(agent, *short, lab.inject("redelivery", "slowly"), read=slowly)
    assert {event.fault for _, event in trial.history.find_events(FaultWitnessed)} == met.keys()
    assert list(trial.history.find_events(FaultHealed)) == []
    assert trial.outcome is lab.Outcome.INVALID
    assert trial.why == "redelivery was injected on slowly 1.1, and the call was over before its caller met it"
