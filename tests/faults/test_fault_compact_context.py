"""A summary stands for the older turns: the wishes are in it, the deeds are not."""

from __future__ import annotations

import pytest
from hypothesis import given

from chaoslab.core.dialog import words_of
from chaoslab.core.exchange import Call
from chaoslab.faults.context.compact_context import CompactContext
from tests.faults.dialogs import FORMATS, accepted, asked, dialogs, met_by, request, said, system


@pytest.mark.parametrize("form", sorted(FORMATS))
def test_the_wishes_stay_and_the_deeds_vanish(form: str) -> None:
    older = [said(form, "user", "refund order 17"), *asked(form, 1, 2), said(form, "assistant", "done")]
    last = [said(form, "user", "and now?"), *asked(form, 2, 1)][: None if form == "responses" else 1]
    sent = met_by(CompactContext(), request(form, [*system(form), *older, *last]))[1]
    summary = sent[len(system(form))]
    assert sent == [*system(form), summary, *last]
    assert words_of(summary) == "Summary of the conversation so far. The user asked:\n- refund order 17"


def test_wishes_alone_are_left_alone() -> None:
    talk = [said("chat", "user", "one"), said("chat", "user", "two")]
    assert not met_by(CompactContext(), request("chat", talk))[0].injected
    assert not met_by(CompactContext(), request("chat", []))[0].injected


@given(dialogs())
def test_a_provider_takes_it_and_no_older_deed_is_left(call: Call) -> None:
    met, sent = met_by(CompactContext(), call)
    assert accepted(call, sent)
    units = [unit for unit in call.dialog.units(call.value) if unit.free]
    older = [message for unit in units[:-1] for message in unit.messages]
    assert met.injected == any(call.dialog.role(message) != "user" for message in older)
    if met.injected:
        assert sent[-len(units[-1].messages) :] == units[-1].messages
        assert len([m for m in sent if call.dialog.role(m) != "system"]) == 1 + len(units[-1].messages)
