"""A result in the history is the one before it of the same tool."""

from __future__ import annotations

import json
from copy import deepcopy

import pytest
from hypothesis import given
from hypothesis import strategies as st

import chaoslab as lab
from chaoslab.base.dice import Dice
from chaoslab.core.exchange import Call
from chaoslab.core.tool_results import tool_results
from chaoslab.faults.context.stale_context import StaleContext
from tests.faults.dialogs import FORMATS, Message, accepted, asked, dialogs, met_by, request, said, system


def contents(messages: list[Message]) -> list[str]:
    """The content of each result."""
    return [str(each.content) for each in tool_results(messages)]


@pytest.mark.parametrize("form", sorted(FORMATS))
def test_a_result_is_the_one_before_it_and_answers_its_own_call(form: str) -> None:
    talk = [*system(form), said(form, "user", "one"), *asked(form, 1, 2), said(form, "assistant", "done")]
    call = request(form, [*talk, said(form, "user", "two")])
    before = deepcopy(call.value)
    met, sent = met_by(StaleContext(0.0), call)
    assert met.injected
    first, second = contents(call.value[call.dialog.key])
    assert first != second
    assert contents(sent) == [first, first]
    assert call.value == before
    assert accepted(call, sent)


@pytest.mark.parametrize("form", sorted(FORMATS))
def test_another_tools_result_is_never_put_there(form: str) -> None:
    other = json.loads(json.dumps(asked(form, 2, 1)).replace('"add"', '"subtract"'))
    talk = [said(form, "user", "one"), *asked(form, 1, 1), *other]
    assert not met_by(StaleContext(0.0), request(form, talk))[0].injected


@given(dialogs(), st.floats(0, 1))
def test_one_result_changes_if_a_tool_has_two_and_a_provider_takes_the_messages(call: Call, point: float) -> None:
    given_ = call.value[call.dialog.key]
    met, sent = met_by(StaleContext(point), call)
    assert accepted(call, sent)
    was, now = contents(given_), contents(sent)
    changed = [place for place, (one, other) in enumerate(zip(was, now, strict=True)) if one != other]
    assert len(changed) == met.injected == (len(was) >= 2)
    assert all(now[place] == was[place - 1] for place in changed)


def test_the_place_is_drawn_unless_it_is_given() -> None:
    drawn = StaleContext().draw(Dice(1))
    assert 0 <= drawn.point < 1
    assert drawn == StaleContext().draw(Dice(1)) != StaleContext().draw(Dice(2))
    assert StaleContext(point=0.5).draw(Dice(1)) == StaleContext(point=0.5)


def test_what_is_no_dialog_passes() -> None:
    for value in (None, 3, {"messages": "x"}, {"messages": [3, {"tool_calls": [{"id": []}], "content": [[]]}]}):
        assert not met_by_value(value)


def met_by_value(value: object) -> bool:
    from tests.faults.fault_parts import CALL, meet

    return meet(StaleContext(0.5), call=CALL.with_value(value)).injected


def test_a_wrong_parameter_is_refused() -> None:
    with pytest.raises(ValueError, match=r"point of stale_context is 2\.0: it should be a number from -1 to 1"):
        lab.inject("stale_context", "model", point=2.0)
