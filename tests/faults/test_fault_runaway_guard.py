"""The same request too often in a trial: the guard refuses it, and no other."""

from dataclasses import replace
from typing import Any

import chaoslab as lab
from chaoslab.core.exchange import Call
from chaoslab.core.fault import Fault
from chaoslab.faults.budget.runaway_guard import RunawayGuard
from tests.faults.fault_parts import CALL, WORDS, Target, answer, meet

AGAIN = replace(CALL, errors=WORDS)


def refused(fault: Fault, memory: dict[str, Any], call: Call) -> bool:
    target = Target()
    met = meet(fault, target, call=call, memory=memory)
    assert met.injected == (target.sent == [])
    return met.injected


def test_the_request_after_the_last_allowed_one_is_refused_and_so_is_every_later_one() -> None:
    memory: dict[str, Any] = {}
    assert [refused(RunawayGuard(2), memory, AGAIN) for _ in range(4)] == [False, False, True, True]


def test_other_arguments_and_other_tools_count_for_themselves() -> None:
    memory: dict[str, Any] = {}
    calls = [AGAIN, replace(AGAIN, value={"city": "Rome"}), replace(AGAIN, tool="forecast"), replace(AGAIN, target="x")]
    assert [refused(RunawayGuard(1), memory, call) for call in calls * 2] == [False] * 4 + [True] * 4


def test_a_retry_is_no_request_of_its_own() -> None:
    memory: dict[str, Any] = {}
    calls = [AGAIN, replace(AGAIN, attempt=2), replace(AGAIN, attempt=3)]
    assert not any(refused(RunawayGuard(1), memory, call) for call in calls)
    assert refused(RunawayGuard(1), memory, AGAIN)
    assert refused(RunawayGuard(1), memory, replace(AGAIN, attempt=2))


def test_the_witness_is_the_refusal_itself() -> None:
    memory: dict[str, Any] = {}
    meet(RunawayGuard(1), call=AGAIN, memory=memory)
    met = meet(RunawayGuard(1), call=AGAIN, memory=memory)
    assert met.reply is not None
    assert (met.reply.status, met.reply.value) == (429, {"busy": True})
    assert met.evidence == "the same call was refused after 1 requests"
    assert met.active.fault.witnessed(replace(met.seen, reply=answer({"busy": False}, 429))) is None
    assert met.active.fault.witnessed(replace(met.seen, reply=None)) is None


def test_a_function_that_an_agent_calls_in_a_loop_is_refused() -> None:
    def look(city: str) -> str:
        return f"sunny in {city}"

    def agent(_: str) -> str:
        failed = 0
        for city in ["Oslo"] * 4 + ["Rome"]:
            try:
                look(city)
            except lab.ToolError:
                failed += 1
        return f"{failed} failed"

    trial = lab.run(agent, "Weather?", reads=[look], faults=[lab.inject("runaway_guard", "look", repeats=2)])
    assert trial.answer == "2 failed"
