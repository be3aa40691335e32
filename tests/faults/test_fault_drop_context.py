"""Messages in the middle vanish, with the results of their calls."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import chaoslab as lab
from chaoslab.base.dice import Dice
from chaoslab.core.exchange import Call
from chaoslab.faults.context.drop_context import DropContext
from tests.faults.dialogs import FORMATS, accepted, asked, dialogs, met_by, request, said


@pytest.mark.parametrize("form", sorted(set(FORMATS) - {"responses"}))
def test_a_call_vanishes_with_its_results(form: str) -> None:
    first, last = said(form, "user", "one"), asked(form, 2, 1)
    call = request(form, [first, *asked(form, 1, 3), *last])
    assert met_by(DropContext(point=0.0), call)[1] == [first, *last]


def test_in_responses_a_call_stays_with_the_message_before_it() -> None:
    one, two, three = (said("responses", "user", each) for each in ("one", "two", "three"))
    call = request("responses", [one, *asked("responses", 1, 1), two, *asked("responses", 2, 1), three])
    assert met_by(DropContext(point=0.0), call)[1] == [one, *asked("responses", 1, 1), three]


def test_the_share_is_of_the_messages_between_the_first_and_the_last() -> None:
    talk = [said("chat", "user", str(n)) for n in range(6)]
    assert met_by(DropContext(0.5, 0.0), request("chat", talk))[1] == [talk[0], *talk[3:]]
    assert met_by(DropContext(0.5, 1.0), request("chat", talk))[1] == [*talk[:3], talk[5]]
    assert met_by(DropContext(0.0, 0.0), request("chat", talk))[1] == [talk[0], *talk[2:]]
    assert met_by(DropContext(1.0, 0.3), request("chat", talk))[1] == [talk[0], talk[5]]
    assert not met_by(DropContext(1.0, 0.3), request("chat", talk[:2]))[0].injected


def test_an_answer_goes_too_where_a_call_would_follow_it() -> None:
    one, two, last = said("gemini", "user", "one"), said("gemini", "user", "two"), asked("gemini", 1, 1)
    talk = [one, said("gemini", "assistant", "done"), two, *last]
    assert met_by(DropContext(0.0, 1.0), request("gemini", talk))[1] == [one, *last]


def test_a_gap_that_no_provider_would_take_is_not_made() -> None:
    talk = [said("chat", "assistant", "hello"), said("chat", "user", "one"), said("chat", "assistant", "two")]
    assert not met_by(DropContext(0.0, 0.0), request("chat", talk))[0].injected


@given(dialogs(), st.floats(0, 1), st.floats(0, 1))
def test_what_is_left_is_in_order_and_a_provider_takes_it(call: Call, part: float, point: float) -> None:
    given_ = call.value[call.dialog.key]
    met, sent = met_by(DropContext(part, point), call)
    assert accepted(call, sent)
    rest = iter(given_)
    assert all(message in rest for message in sent)
    assert sent[-1] == given_[-1]
    assert met.injected == (sum(unit.free for unit in call.dialog.units(call.value)) >= 3)


def test_the_place_is_drawn_unless_it_is_given() -> None:
    drawn = DropContext().draw(Dice(1))
    assert 0 <= drawn.point < 1
    assert drawn == DropContext().draw(Dice(1)) != DropContext().draw(Dice(2))
    assert DropContext(point=0.5).draw(Dice(1)) == DropContext(point=0.5)


def test_a_wrong_parameter_is_refused() -> None:
    with pytest.raises(ValueError, match=r"part of drop_context is 1\.5: it should be a number from 0 to 1"):
        lab.inject("drop_context", "model", part=1.5)
