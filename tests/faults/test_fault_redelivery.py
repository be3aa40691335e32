"""The call arrives twice, as from a queue or a proxy that sends again what was done."""

from __future__ import annotations

import chaoslab as lab
from chaoslab.faults.tool.redelivery import Redelivery
from tests.faults.fault_parts import CALL, Target, meet


def test_the_same_call_is_sent_twice_and_the_caller_has_an_answer() -> None:
    met = meet(Redelivery(), target := Target())
    assert target.sent == [CALL, CALL]
    assert met.reply is target.reply
    assert met.evidence == "the service was asked twice, and the caller has the second answer"


def test_a_service_that_does_not_answer_gets_it_once() -> None:
    met = meet(Redelivery(), target := Target(fails="reset"))
    assert (len(target.sent), met.error, met.injected, met.evidence) == (1, "reset", False, None)


def test_the_ledger_shows_both_effects_and_an_idempotency_key_saves_from_them() -> None:
    paid: list[int] = []

    def refund(order: int, idempotency_key: str = "") -> str:
        paid.append(order)
        return f"refunded {order} {idempotency_key}"

    def naive(_: str) -> str:
        return refund(17)

    def careful(_: str) -> str:
        return refund(17, idempotency_key="a")

    faults = [lab.inject("redelivery", "refund")]
    effects = [{"effect": "refund", "order": 17}]
    assert lab.run(naive, "refund", tools=[refund], faults=faults, effects=effects).outcome is lab.Outcome.HARM
    assert paid == [17, 17]
    effects = [{"effect": "refund", "order": 17, "idempotency_key": "a"}]
    trial = lab.run(careful, "refund", tools=[refund], faults=faults, effects=effects)
    assert trial.outcome is lab.Outcome.CORRECT, trial.story()
