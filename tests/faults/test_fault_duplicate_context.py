"""A message of the user stands twice; a call never does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import chaoslab as lab
from chaoslab.base.dice import Dice
from chaoslab.core.exchange import Call
from chaoslab.faults.context.duplicate_context import DuplicateContext
from tests.faults.dialogs import FORMATS, accepted, asked, dialogs, met_by, request, said


@pytest.mark.parametrize("form", sorted(FORMATS))
def test_a_message_of_the_user_stands_twice(form: str) -> None:
    one, two = said(form, "user", "one"), said(form, "user", "two")
    talk = [one, *asked(form, 1, 2), said(form, "assistant", "done"), two]
    assert met_by(DuplicateContext(0.0), request(form, talk))[1] == [one, *talk]
    assert met_by(DuplicateContext(1.0), request(form, talk))[1] == [*talk, two]


def test_the_copy_has_no_id_of_its_own() -> None:
    talk = [{"id": "msg_1", "role": "user", "content": "one"}]
    assert met_by(DuplicateContext(0.0), request("responses", talk))[1] == [{"role": "user", "content": "one"}, *talk]


def test_nothing_of_the_user_is_nothing_to_repeat() -> None:
    assert not met_by(DuplicateContext(0.0), request("chat", asked("chat", 1, 1)))[0].injected
    assert not met_by(DuplicateContext(0.0), request("chat", []))[0].injected


@given(dialogs(), st.floats(0, 1))
def test_there_is_one_message_more_and_a_provider_takes_them(call: Call, point: float) -> None:
    met, sent = met_by(DuplicateContext(point), call)
    assert met.injected
    assert accepted(call, sent)
    assert len(sent) == len(call.value[call.dialog.key]) + 1


def test_the_place_is_drawn_unless_it_is_given() -> None:
    drawn = DuplicateContext().draw(Dice(1))
    assert 0 <= drawn.point < 1
    assert drawn == DuplicateContext().draw(Dice(1)) != DuplicateContext().draw(Dice(2))
    assert DuplicateContext(point=0.5).draw(Dice(1)) == DuplicateContext(point=0.5)


def test_a_wrong_parameter_is_refused() -> None:
    with pytest.raises(ValueError, match=r"point of duplicate_context is 2\.0: it should be a number from -1 to 1"):
        lab.inject("duplicate_context", "model", point=2.0)
