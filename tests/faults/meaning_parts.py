"""Shared by the tests of faults that change an answer's meaning: any JSON, and the laws that all of them keep."""

import json
import re
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import strategies as st

from chaoslab.base.dice import Dice
from chaoslab.core.exchange import Call, PastAttempt, Reply
from chaoslab.core.fault import Fault
from chaoslab.core.inject import inject
from chaoslab.seams.functions.wrapped import Returned
from tests.faults.fault_parts import CALL, Meeting, Target, answer, meet

ORDERS: dict[str, Any] = {
    "count": 3, "total": 60.0, "currency": "EUR", "next": "https://shop.example.org/orders?page=2",
    "orders": [
        {"id": "ord_101", "number": 101, "amount": 10.0, "placed": "2026-05-01", "status": "paid", "open": False},
        {"id": "ord_102", "number": 102, "amount": 20.0, "placed": "2026-05-02", "status": "shipped", "open": True},
        {"id": "ord_103", "number": 103, "amount": 30.0, "placed": "2026-05-03", "status": "paid", "open": False},
    ],
}  # fmt: skip
WEATHER: dict[str, Any] = {"city": "Oslo", "temp": 20.5, "humidity": 48, "sky": "clear", "at": "2026-06-01T09:00:00Z"}
LEAVES: Any = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text(),
    st.sampled_from(["2026-06-01", "ord_17", "https://a.example/b", "ana@example.org", "paid", "It is 7 now.", "12"]),
)  # fmt: skip
JSON: Any = st.recursive(
    LEAVES,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=6), inner, max_size=4)),
)
SEEDS = st.integers(0, 10**6)


@dataclass
class Order:
    """A function's own type."""

    id: str
    amount: float
    tags: tuple[str, ...] = ("gift", "rush")


def told(fault: Fault, value: Any, *, call: Call = CALL, **context: Any) -> Any:
    """The value that the caller gets in the place of a true one."""
    met = meet(fault.draw(Dice(1)), Target(answer(value)), call=call, **context)
    assert met.reply is not None
    return met.reply.value


def returned(fault: Fault, result: Any, *, call: Call = CALL, **context: Any) -> Any:
    """The result that a function's caller gets in the place of a true one."""
    met = meet(fault.draw(Dice(1)), Target(Returned(result)), call=call, **context)
    assert met.reply is not None
    return met.reply.value


def before(value: Any, arguments: Any, *, status: int = 200, tool: str = CALL.tool) -> PastAttempt:
    """An earlier exchange with the same target."""
    return PastAttempt(replace(CALL, tool=tool, value=arguments), answer(value, status), None, 0.0, 0.1)


def keeps_the_laws(fault: Fault, value: Any, **context: Any) -> bool:
    """Checks what holds for every changed answer, and returns if this one was changed: it is another one, the true one
    is not altered, it is the same in a replay, and only who got it has met it."""
    text, true = json.dumps(value), answer(value)
    met = meet(fault, Target(true), **context)
    assert met.reply is not None
    assert json.dumps(true.value) == text
    if not met.injected:
        assert met.reply is true
        assert met.evidence is None
        return False
    assert json.dumps(met.reply.value) != text
    assert met.reply.status == 200
    assert met.evidence
    assert fault.witnessed(replace(met.seen, reply=true)) is None
    assert fault.witnessed(replace(met.seen, reply=None, error="timed_out")) is None
    again = meet(fault, Target(answer(value)), **context)
    assert again.reply is not None
    assert again.reply.body == met.reply.body
    return True


CHAT: Any = {
    "id": "chatcmpl-1", "object": "chat.completion", "model": "m", "usage": {"total_tokens": 7},
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "It is 20 °C."}}],
}  # fmt: skip
UNTOUCHED: list[Reply] = [
    answer({"error": "no such order", "status": 404}, 404), answer({"total": 20}, 302), Reply(204, {}, b""),
    Reply(200, {"content-type": "text/html"}, b"<html>temp 20</html>"), answer(None),
]  # fmt: skip


def leaves_others_alone(fault: Fault) -> None:
    """Checks that errors, replies without JSON, the answers of models and failed calls pass as they are."""
    fault = fault.draw(Dice(1))
    for reply in UNTOUCHED:
        met = meet(fault, Target(reply))
        assert (met.reply is reply, met.injected, met.evidence) == (True, False, None)
    asked = replace(CALL, value={"model": "m", "messages": [{"role": "user", "content": "How warm is it?"}]})
    reply = answer(CHAT)
    met = meet(fault, Target(reply), call=asked)
    assert (met.reply is reply, met.injected) == (True, False)
    failed: Meeting = meet(fault, Target(fails="reset"))
    assert (failed.error, failed.injected, failed.evidence) == ("reset", False, None)


def refuses(name: str, params: dict[str, Any], line: str) -> None:
    """Checks the one line for parameters that are wrong."""
    with pytest.raises(ValueError, match=f"^{re.escape(line)}$"):
        inject(name, "orders", **params)
