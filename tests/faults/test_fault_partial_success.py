"""The work is done, and the answer reports a part of it as failed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

import chaoslab as lab
from chaoslab.core.exchange import Reply
from chaoslab.faults.tool.partial_success import FAILED, PartialSuccess
from tests.faults.fault_parts import Target, answer, meet


def test_half_of_a_list_is_acknowledged() -> None:
    target = Target(reply=answer([1, 2, 3]))
    met = meet(PartialSuccess(), target)
    assert met.reply is not None
    assert (met.reply.status, len(target.sent)) == (207, 1)
    assert met.reply.value == {"successes": [1], "failures": [{**FAILED, "item": 2}, {**FAILED, "item": 3}]}
    assert met.evidence


@given(st.booleans() | st.integers() | st.text() | st.dictionaries(st.text(), st.integers()))
def test_any_other_result_is_one_success_beside_one_failure(value: object) -> None:
    met = meet(PartialSuccess(), Target(reply=answer(value)))
    assert met.reply is not None
    assert met.reply.value == {"successes": [value], "failures": [FAILED]}


@pytest.mark.parametrize("reply", [answer({"error": "busy"}, 503), Reply(204, {})])
def test_an_error_and_an_empty_answer_stay_as_they_are(reply: Reply) -> None:
    met = meet(PartialSuccess(), Target(reply=reply))
    assert met.reply is reply
    assert not met.injected


def test_another_answer_is_no_witness() -> None:
    met = meet(PartialSuccess())
    assert met.active.fault.witnessed(replace(met.seen, reply=answer({}))) is None


@pytest.mark.parametrize("result", [[1, 2], (1, 2), 7])
def test_a_function_has_its_effect_and_returns_both_parts(result: object) -> None:
    def refund(order: int) -> object:  # noqa: ARG001
        return result

    def agent(_: str) -> str:
        return ",".join(refund(17))  # type: ignore[arg-type]

    trial = lab.run(agent, "go", tools=[refund], faults=[lab.inject("partial_success", "refund")], anyway=True)
    assert (trial.answer, len(trial.effects)) == ("successes,failures", 1)


def test_a_service_that_answers_201_answers_207() -> None:
    def shop(_request: Any) -> tuple[int, dict[str, bool]]:
        return 201, {"ok": True}

    def agent(_: str) -> int:
        return httpx.post("http://shop/refunds", json={"order": 17}).status_code

    trial = lab.run(agent, "go", services={"shop": shop}, faults=[lab.inject("partial_success", "shop")])
    assert trial.answer == 207
