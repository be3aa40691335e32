"""Two messages say to see each other, and neither says anything else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import chaoslab as lab
from chaoslab.base.dice import Dice
from chaoslab.core.dialog import words_of
from chaoslab.core.exchange import Call
from chaoslab.faults.context.circular_reference import CircularReference
from tests.faults.dialogs import FORMATS, accepted, asked, dialogs, met_by, request, said, system


@pytest.mark.parametrize("form", sorted(FORMATS))
def test_the_two_name_each_other_by_their_numbers(form: str) -> None:
    talk = [
        *system(form), said(form, "user", "one"), *asked(form, 1, 1), said(form, "assistant", "done"),
        said(form, "user", "two"),
    ]  # fmt: skip
    call = request(form, talk)
    met, sent = met_by(CircularReference(0.0), call)
    first = len(system(form))
    result = first + len(asked(form, 1, 1))
    assert met.injected
    assert words_of(sent[first]) == f"See message {result + 1}."
    assert words_of(sent[result]) == f"See message {first + 1}."
    changed = [place for place, (was, now) in enumerate(zip(talk, sent, strict=True)) if was != now]
    assert changed == [first, result]
    assert accepted(call, sent)


@given(dialogs(), st.floats(0, 1))
def test_two_change_if_there_are_two_and_a_provider_takes_them(call: Call, point: float) -> None:
    given_, role = call.value[call.dialog.key], call.dialog.role
    met, sent = met_by(CircularReference(point), call)
    assert accepted(call, sent)
    roles = [role(message) for message in given_]
    results = [each for each, message in zip(roles, given_, strict=True) if each == "tool" and words_of(message)]
    assert met.injected == (roles.count("user") - 1 + len(results) >= 2)
    changed = [place for place, (was, now) in enumerate(zip(given_, sent, strict=True)) if was != now]
    assert len(changed) == 2 * met.injected
    newest = max(place for place, each in enumerate(roles) if each == "user")
    assert all(roles[place] in ("user", "tool") and place != newest for place in changed)


def test_the_place_is_drawn_unless_it_is_given() -> None:
    drawn = CircularReference().draw(Dice(1))
    assert 0 <= drawn.point < 1
    assert drawn == CircularReference().draw(Dice(1)) != CircularReference().draw(Dice(2))
    assert CircularReference(point=0.5).draw(Dice(1)) == CircularReference(point=0.5)


def test_a_wrong_parameter_is_refused() -> None:
    with pytest.raises(ValueError, match=r"point of circular_reference is 2\.0: it should be a number from -1 to 1"):
        lab.inject("circular_reference", "model", point=2.0)
