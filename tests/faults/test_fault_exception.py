"""The tool raises an exception instead of doing the work."""

from __future__ import annotations

from dataclasses import replace

import chaoslab as lab
from chaoslab.faults.tool.exception import Exception as ExceptionFault
from tests.faults.fault_parts import Target, answer, meet


def test_a_service_answers_500_with_the_message_and_is_not_asked() -> None:
    target = Target()
    met = meet(ExceptionFault("database is locked"), target)
    assert met.reply is not None
    assert (met.reply.status, met.reply.error_words, target.sent) == (500, "database is locked", [])
    assert met.evidence


def test_another_answer_is_no_witness() -> None:
    met = meet(ExceptionFault())
    assert met.active.fault.witnessed(replace(met.seen, reply=answer({}))) is None


def test_a_function_raises_with_the_message_and_has_no_effect() -> None:
    def refund(order: int) -> str:
        return f"refunded {order}"

    def agent(_: str) -> str:
        try:
            return refund(17)
        except Exception as error:  # noqa: BLE001 - it is what is looked at
            return str(error)

    locked = lab.inject("exception", "refund", message="database is locked")
    trial = lab.run(agent, "go", tools=[refund], faults=[locked])
    assert "database is locked" in str(trial.answer)
    assert trial.effects == []
