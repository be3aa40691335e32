"""The model calls the right tool with an argument that is wrong, and looks right."""

from __future__ import annotations

import pytest

from chaoslab.base.dice import Dice
from chaoslab.faults.model.wrong_arguments import WrongArguments
from tests.faults.answer_parts import FORMATS, TEXT, met

EVIDENCE = "an answer that the model did not give reached the caller"


@pytest.mark.parametrize("name", FORMATS)
def test_one_value_of_the_first_call_is_another_of_its_type(name: str) -> None:
    meeting, said = met(WrongArguments(point=0.0), name, calls=True)
    first, second = [call.values for call in said.calls]
    assert first is not None
    assert first.keys() == {"city", "unit"}
    assert first["city"] != "Oslo"
    assert isinstance(first["city"], str)
    assert first["unit"] == "C"
    assert second == {"city": "Paris", "unit": "C"}
    assert meeting.evidence == EVIDENCE


@pytest.mark.parametrize("name", FORMATS)
def test_or_one_has_a_name_that_the_tool_does_not_know(name: str) -> None:
    meeting, said = met(WrongArguments(how="name", point=0.9), name, calls=True)
    assert said.calls[0].values == {"city": "Oslo", "unit_value": "C"}
    assert meeting.evidence == EVIDENCE


def test_the_dice_pick_the_argument() -> None:
    drawn = {WrongArguments().draw(Dice(seed)).point for seed in range(9)}
    assert len(drawn) == 9
    assert all(0 <= point < 1 for point in drawn)
    assert WrongArguments(point=0.5).draw(Dice(1)).point == 0.5


@pytest.mark.parametrize("name", FORMATS)
def test_an_answer_in_words_has_no_call_to_change(name: str) -> None:
    meeting, said = met(WrongArguments(point=0.0), name, calls=False)
    assert (said.text, meeting.injected, meeting.evidence) == (TEXT, False, None)
