"""The older turns of a conversation come in another order; the newest stays the last."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import chaoslab as lab
from chaoslab.base.dice import Dice
from chaoslab.core.exchange import Call
from chaoslab.faults.context.reorder_context import ReorderContext
from tests.faults.dialogs import FORMATS, accepted, asked, dialogs, met_by, request, said, system


@pytest.mark.parametrize("form", sorted(FORMATS))
def test_the_older_turns_change_places_and_keep_their_calls(form: str) -> None:
    first = [said(form, "user", "one"), *asked(form, 1, 2), said(form, "assistant", "done")]
    second = [said(form, "user", "two"), said(form, "assistant", "done too")]
    last = [said(form, "user", "three"), *asked(form, 3, 1)]
    call = request(form, [*system(form), *first, *second, *last])
    assert met_by(ReorderContext(0.0), call)[1] == [*system(form), *second, *first, *last]


def test_two_turns_are_left_alone() -> None:
    talk = [said("chat", "user", "one"), said("chat", "assistant", "two"), said("chat", "user", "three")]
    assert not met_by(ReorderContext(0.5), request("chat", talk))[0].injected


@given(dialogs(), st.floats(0, 1))
def test_every_message_is_still_there_and_a_provider_takes_them(call: Call, point: float) -> None:
    given_ = call.value[call.dialog.key]
    met, sent = met_by(ReorderContext(point), call)
    assert accepted(call, sent)
    assert sorted(map(repr, sent)) == sorted(map(repr, given_))
    assert sent[-1] == given_[-1]
    turns = sum(call.dialog.role(message) == "user" for message in given_)
    assert met.injected == (turns >= 3)


def test_the_place_is_drawn_unless_it_is_given() -> None:
    drawn = ReorderContext().draw(Dice(1))
    assert 0 <= drawn.point < 1
    assert drawn == ReorderContext().draw(Dice(1)) != ReorderContext().draw(Dice(2))
    assert ReorderContext(point=0.5).draw(Dice(1)) == ReorderContext(point=0.5)


def test_a_wrong_parameter_is_refused() -> None:
    with pytest.raises(ValueError, match=r"point of reorder_context is 2\.0: it should be a number from -1 to 1"):
        lab.inject("reorder_context", "model", point=2.0)
