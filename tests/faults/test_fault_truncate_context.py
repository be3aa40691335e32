"""The oldest messages vanish from what the model is sent; the rest is still a conversation that a provider takes."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaoslab.base.dice import Dice
from chaoslab.core.exchange import Call
from chaoslab.faults.context.truncate_context import TruncateContext
from tests.faults import dialogs
from tests.faults.dialogs import Message, accepted, met_by, request
from tests.faults.fault_parts import Target, meet

(SYSTEM,) = dialogs.system("chat")
FIVE = [dialogs.said("chat", "user", str(n)) for n in range(5)]
ANSWERED = [FIVE[0], dialogs.said("chat", "assistant", "4"), FIVE[1], dialogs.said("chat", "assistant", "5")]
CALLED = dialogs.asked("chat", 1, 3)
ORPHANS = dialogs.asked("chat", 1, 2)[1:]


@pytest.mark.parametrize(
    ("talk", "keep", "left"),
    [
        ([SYSTEM, *ANSWERED], 0.5, [SYSTEM, *ANSWERED[2:]]),
        ([SYSTEM, FIVE[0], *CALLED], 0.5, [SYSTEM, *CALLED]),
        (CALLED, 0.0, CALLED),
        ([*CALLED, ANSWERED[1]], 0.5, [*CALLED, ANSWERED[1]]),
        (ORPHANS, 0.0, ORPHANS),
        ([SYSTEM, FIVE[0]], 0.5, [SYSTEM, FIVE[0]]),
        (FIVE, 0.0, FIVE[4:]),
        (FIVE, 0.5, FIVE[3:]),
        ([SYSTEM, *FIVE], 0.99, [SYSTEM, *FIVE[1:]]),
    ],
    ids=[
        "the oldest half vanishes and the system stays",
        "a call is kept with its results",
        "and at the very beginning",
        "and before its answer",
        "results that answer nothing are kept from the first on",
        "a single question is left alone",
        "at least one message is left",
        "and no more than the share",
        "and no more than nearly all",
    ],
)
def test_of_a_conversation_the_newest_share_is_left(talk: list[Message], keep: float, left: list[Message]) -> None:
    assert met_by(TruncateContext(keep), request("chat", talk))[1] == left


def test_a_call_without_messages_passes() -> None:
    target = Target()
    empty: list[Any] = [None, {}, {"messages": []}]
    for value in empty:
        met = meet(TruncateContext(), target, call=replace(request("chat", []), value=value))
        assert (met.reply, met.injected) == (target.reply, False)


@given(dialogs.dialogs(), st.floats(0, 1))
def test_no_result_is_orphaned_nothing_is_reordered_and_the_newest_message_survives(call: Call, keep: float) -> None:
    role = call.dialog.role
    left = met_by(TruncateContext(keep), call)[1]
    others = [m for m in call.value[call.dialog.key] if role(m) != "system"]
    kept = [m for m in left if role(m) != "system"]
    assert kept
    assert kept == others[len(others) - len(kept) :]
    assert accepted(call, [dialogs.said(dialogs.form_of(call), "user", "which went before"), *left])


@given(dialogs.dialogs())
def test_keeping_all_keeps_all(call: Call) -> None:
    assert met_by(TruncateContext(1.0), call)[1] == call.value[call.dialog.key]


def test_the_witness_is_the_request_that_really_left() -> None:
    met, _ = met_by(TruncateContext(), request("chat", [SYSTEM, *FIVE[:4]]))
    assert met.evidence == "the model was sent 3 messages"
    assert met.active.fault.witnessed(replace(met.seen, changed_call=None)) is None


def test_nothing_is_drawn_and_nothing_is_on_the_wire() -> None:
    assert TruncateContext(0.3).draw(Dice(1)) == TruncateContext(0.3)
    assert TruncateContext().toxics() == ()
