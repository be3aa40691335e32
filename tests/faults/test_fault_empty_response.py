"""The service does the work, and its answer is empty."""

from __future__ import annotations

from dataclasses import replace

import chaoslab as lab
from chaoslab.faults.tool.empty_response import EmptyResponse
from tests.faults.fault_parts import Target, answer, meet


def test_the_work_is_done_and_the_body_is_empty() -> None:
    target = Target()
    target.reply = answer({"id": 7}, 201, {"Content-Type": "application/json", "Content-Length": "9", "ETag": "a"})
    met = meet(EmptyResponse(), target)
    assert met.reply is not None
    assert (met.reply.status, met.reply.body) == (201, b"")
    assert met.reply.headers == {"Content-Type": "application/json", "ETag": "a"}
    assert len(target.sent) == 1
    assert met.evidence == "an empty answer with status 201 reached the caller"


def test_another_answer_is_no_witness() -> None:
    met = meet(EmptyResponse())
    fault = met.active.fault
    assert fault.witnessed(replace(met.seen, reply=answer({"temp": 20}))) is None
    assert fault.witnessed(replace(met.seen, reply=None, error="reset")) is None


def test_a_function_has_its_effect_and_returns_nothing() -> None:
    def refund(order: int) -> str:
        return f"refunded {order}"

    def agent(_: str) -> str:
        return str(refund(17))

    trial = lab.run(agent, "go", tools=[refund], faults=[lab.inject("empty_response", "refund")])
    assert trial.answer == "None"
    assert trial.effects == [{"effect": "refund", "order": 17}]
