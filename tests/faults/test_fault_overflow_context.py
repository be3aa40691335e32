"""Text that has nothing to do with the task fills the context."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import chaoslab as lab
from chaoslab.core.dialog import words_of
from chaoslab.core.exchange import Call
from chaoslab.faults.context.overflow_context import OverflowContext
from tests.faults.dialogs import FORMATS, accepted, asked, dialogs, met_by, request, said


@pytest.mark.parametrize("form", sorted(FORMATS))
def test_the_filler_stands_before_the_newest_message_of_the_user(form: str) -> None:
    talk = [said(form, "user", "one"), said(form, "assistant", "two"), said(form, "user", "three"), *asked(form, 1, 2)]
    sent = met_by(OverflowContext(1000), request(form, talk))[1]
    assert [*sent[:2], *sent[3:]] == talk
    assert len(words_of(sent[2]).split()) == 1000


def test_nothing_of_the_user_is_nothing_to_fill() -> None:
    assert not met_by(OverflowContext(), request("chat", []))[0].injected


@given(dialogs(), st.integers(1, 50))
def test_a_provider_takes_it_and_nothing_is_lost(call: Call, tokens: int) -> None:
    given_ = call.value[call.dialog.key]
    met, sent = met_by(OverflowContext(tokens), call)
    assert met.injected
    assert accepted(call, sent)
    rest = iter(sent)
    assert all(message in rest for message in given_)


def test_a_wrong_parameter_is_refused() -> None:
    with pytest.raises(ValueError, match="tokens of overflow_context is 0: it should be a whole number from 1 to"):
        lab.inject("overflow_context", "model", tokens=0)
