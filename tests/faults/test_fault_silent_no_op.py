"""The service does nothing, and answers as if it had."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given

from chaoslab.core.exchange import Call
from chaoslab.faults.meaning.silent_no_op import SilentNoOp
from tests.faults.fault_parts import CALL, Target, answer, meet
from tests.faults.meaning_parts import CHAT, JSON, before

REFUND = replace(CALL, target="shop", tool="refund", value={"order": 17, "amount": 30.0, "note": ["x"]})


def acted(call: Call = REFUND, **context: Any) -> Any:
    """The answer of a service that was not asked."""
    target = Target(answer({"never": "sent"}))
    met = meet(SilentNoOp(), target, call=call, **context)
    assert met.reply is not None
    assert (met.reply.status, target.sent, met.injected) == (200, [], True)
    assert met.evidence == "a success reached the caller, and the service was not asked"
    return met.reply.value


def test_the_first_time_it_answers_ok_with_the_arguments() -> None:
    assert acted() == {"ok": True, "order": 17, "amount": 30.0}


def test_later_it_answers_as_the_tool_did_before_with_these_arguments_and_a_new_id() -> None:
    done = {"refund": {"id": "re_51", "order": 16, "amount": 9.5}, "status": "succeeded"}
    old = before(done, {"order": 16, "amount": 9.5})
    earlier = [replace(old, call=replace(old.call, target="shop", tool="refund"))]
    got = acted(earlier=earlier)
    new = got["refund"]["id"]
    assert got == {"refund": {"id": new, "order": 17, "amount": 30.0}, "status": "succeeded"}
    assert (new[:3], new != "re_51") == ("re_", True)


@given(JSON)
def test_any_earlier_answer_becomes_one_to_this_call(done: Any) -> None:
    old = before(done, {"order": 16})
    acted(earlier=[replace(old, call=replace(old.call, target="shop", tool="refund"))])


def test_who_saw_another_reply_has_not_met_it() -> None:
    met = meet(SilentNoOp(), Target(), call=REFUND)
    assert SilentNoOp().witnessed(replace(met.seen, reply=answer({"other": 1}))) is None
    assert SilentNoOp().witnessed(replace(met.seen, reply=None, error="timed_out")) is None
    assert SilentNoOp().witnessed(replace(met.seen, sent=REFUND)) is None


def test_a_model_is_asked_as_ever() -> None:
    reply = answer(CHAT)
    target = Target(reply)
    asked = replace(CALL, value={"model": "m", "messages": [{"role": "user", "content": "Hello"}]})
    met = meet(SilentNoOp(), target, call=asked)
    assert (met.reply is reply, len(target.sent), met.injected) == (True, 1, False)
