"""The user's newest message is damaged, and no other."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import chaoslab as lab
from chaoslab.core.dialog import words_of
from chaoslab.core.exchange import Call
from chaoslab.faults.context.garble_input import GarbleInput
from tests.faults.dialogs import FORMATS, accepted, asked, dialogs, met_by, request, said


@pytest.mark.parametrize("form", sorted(FORMATS))
def test_only_the_newest_message_of_the_user_is_damaged(form: str) -> None:
    before = [said(form, "user", "refund order 16"), said(form, "assistant", "refunded")]
    talk = [*before, said(form, "user", "refund order 17 please"), *asked(form, 1, 1)]
    typed = met_by(GarbleInput(), request(form, talk))[1]
    assert typed == [*before, said(form, "user", "rfeund order 17 pelase"), *asked(form, 1, 1)]
    cut = met_by(GarbleInput("cut"), request(form, talk))[1]
    assert cut == [*before, said(form, "user", "refund orde"), *asked(form, 1, 1)]


def test_a_bare_text_is_the_users_only_message() -> None:
    call = request("responses", [])
    call = call.with_value({**call.value, "input": "refund order 17"})
    assert met_by(GarbleInput("cut"), call)[1] == [{"role": "user", "content": "refund o"}]
    assert not met_by(GarbleInput(), call.with_value({**call.value, "input": "17"}))[0].injected


def test_nothing_to_damage_is_left_alone() -> None:
    for kind, text in (("typos", "17 + 4"), ("typos", "aaaa"), ("cut", ""), ("cut", "a")):
        fault = GarbleInput(kind)  # type: ignore[arg-type]
        assert not met_by(fault, request("chat", [said("chat", "user", text)]))[0].injected
    assert not met_by(GarbleInput(), request("chat", []))[0].injected


@given(dialogs(), st.sampled_from(("typos", "cut")))
def test_a_provider_takes_it_and_one_message_differs(call: Call, kind: str) -> None:
    given_ = call.value[call.dialog.key]
    met, sent = met_by(GarbleInput(kind), call)  # type: ignore[arg-type]
    assert met.injected
    assert accepted(call, sent)
    (place,) = (n for n, (old, new) in enumerate(zip(given_, sent, strict=True)) if old != new)
    assert call.dialog.role(given_[place]) == "user"
    assert words_of(sent[place])


@given(st.text())
def test_typing_errors_lose_no_letter(text: str) -> None:
    sent = met_by(GarbleInput(), request("chat", [said("chat", "user", text)]))[1]
    assert sorted(words_of(sent[0])) == sorted(text)


def test_a_wrong_parameter_is_refused() -> None:
    with pytest.raises(ValueError, match="kind of garble_input is 'x': it should be 'typos' or 'cut'"):
        lab.inject("garble_input", "model", kind="x")
