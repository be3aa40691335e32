"""One attempt of a call at no real seam: which faults it meets, and what is kept of it."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from chaoslab.base.clock import SystemClock
from chaoslab.core.attempt import Attempt
from chaoslab.core.chain import ActiveFault, run_synchronously
from chaoslab.core.events import Event, FaultHealed, FaultWitnessed
from chaoslab.core.exchange import Call, Failure, Reply
from chaoslab.core.memory import TrialMemory
from chaoslab.core.plan import Candidates, Choice, Injection, Plan
from chaoslab.faults.network.latency import Latency

JSON = {"content-type": "application/json"}
CALL = Call("search", "search", "p1.r1", 1, 1, value={"ids": [1, 2, 3]})


class Standing(SystemClock):
    """Goes on by what is waited, and by nothing else."""

    now_s = 0.0

    def monotonic(self) -> float:
        return self.now_s

    def utc(self) -> datetime:
        return datetime(2026, 6, 1, 9, 0, tzinfo=UTC)

    async def sleep_async(self, delay_s: float) -> None:
        self.now_s += delay_s


class Own(Attempt):
    """Answers each call with the same reply."""

    def __init__(self, memory: TrialMemory, reply: Callable[[], Reply], deadline_s: float) -> None:
        injections = Candidates(memory.plan.injections)
        occasion = memory.build_occasion("search", "search", 1, 1)
        self.events: list[Event] = []
        self.reply = reply
        super().__init__(
            CALL, memory, injections, memory.decide_hits(injections, occasion), clock=Standing(), began_s=0.0,
            deadline_s=deadline_s, elapsed_s=0.0, spent={},
        )  # fmt: skip

    async def send(self, call: Call) -> Reply:
        self.sent = call
        return self.reply()

    def log_flow_event(self, event: Event) -> None:
        self.events.append(event)


def over(*faults: tuple[str, dict[str, Any]], status: int = 200, deadline_s: float = 2.0) -> Own:
    """An attempt that all of these faults hit, to its end."""
    plan = Plan(7, tuple(Injection(name, (Choice(name, 1.0, params),), ("search",)) for name, params in faults))
    attempt = Own(TrialMemory(plan, "p1.r1"), lambda: Reply(status, JSON, b'{"results": [1, 2, 3]}'), deadline_s)
    reply, failure = None, None
    try:
        reply = run_synchronously(attempt.send_through_faults())
    except Failure as error:
        failure = error
    attempt.record_outcome(reply, failure)
    return attempt


def test_a_refusal_masks_the_other_fault_of_the_wire_and_nobody_asked_for_it() -> None:
    attempt = over(("latency", {"delay_s": 1.0}), ("refused", {}))
    assert [each.fault_name for each in attempt.faults.active] == ["refused"]
    assert attempt.faults.rolled == ["refused"]


@pytest.mark.parametrize(("status", "left"), [(200, True), (302, True), (399, True), (400, False), (503, False)])
def test_a_reply_that_is_no_failure_has_nothing_left_to_use(status: int, left: bool) -> None:
    attempt = over(("malformed_json", {}), status=status)
    assert any(isinstance(event, FaultWitnessed) for event in attempt.events)
    assert attempt.left.startswith(f"status {status}, and ") is left
    assert bool(attempt.left) is left


@pytest.mark.parametrize(("delay_s", "error"), [(1.999, None), (2.0, "timed_out"), (2.001, "timed_out")])
def test_a_wait_that_takes_all_that_is_left_ends_by_the_deadline(delay_s: float, error: str | None) -> None:
    attempt = Own(TrialMemory(Plan(7), "p1.r1"), lambda: Reply(200, JSON), 2.0)
    failed = None
    try:
        run_synchronously(attempt.wait(delay_s))
    except Failure as failure:
        failed = failure.kind
    assert failed == error
    assert attempt.duration_s == min(delay_s, 2.0)


@pytest.mark.parametrize(
    ("changed", "true"), [({"call": CALL}, False), ({"reply": Reply(200, JSON)}, False), ({}, True)]
)
def test_an_exchange_is_true_if_neither_its_call_nor_its_reply_was_changed(changed: dict[str, Any], true: bool) -> None:
    stale = Injection("stale", (Choice("stale"),), ("search",))  # which looks back
    attempt = Own(TrialMemory(Plan(7, (stale,)), "p1.r1"), lambda: Reply(200, JSON, b"[1]"), 2.0)
    reply = run_synchronously(attempt.send_through_faults())
    attempt.faults.active.append(ActiveFault("another", "latency", Latency(), **changed))
    attempt.record_outcome(reply, None)
    assert [exchange.true for exchange in attempt._memory.earlier] == [true]


def test_a_fault_that_did_not_act_was_not_masked() -> None:
    """A delay that its caller gave up masks those that have acted; a story that was not reached has done nothing."""
    plan = Plan(7, tuple(Injection(n, (Choice(n, 1.0, p),), ("search",)) for n, p in MASKING))
    attempt = Own(TrialMemory(plan, "p1.r1"), lambda: Reply(200, JSON, b'{"results": [1, 2, 3]}'), 5.0)
    for reach in attempt._stories:
        reach(CALL)
    delay, acted, idle = attempt.faults.active
    delay.waits = delay.met = delay.injected = acted.injected = True
    attempt.faults.log_masked_faults()
    healed = [event for event in attempt.events if isinstance(event, FaultHealed)]
    assert [(event.fault, event.masked_by) for event in healed] == [(acted.fault_name, delay.fault_name)]
    assert not idle.injected


MASKING: tuple[tuple[str, dict[str, Any]], ...] = (("delay", {"mean_s": 1.0}), ("tool_error", {}), ("wrong_value", {}))
