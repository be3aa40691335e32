"""The model answers by itself, with figures that nobody gave it."""

from __future__ import annotations

import pytest

from chaoslab.faults.model.confabulation import Confabulation
from tests.faults.answer_parts import FORMATS, TEXT, met

EVIDENCE = "an answer that the model did not give reached the caller"


@pytest.mark.parametrize("name", FORMATS)
def test_every_number_in_its_words_is_another_one(name: str) -> None:
    meeting, said = met(Confabulation(), name, calls=False)
    assert (said.text, meeting.evidence) == ("It is 54.8 degrees in Oslo and 63 in Paris.", EVIDENCE)
    assert len(said.text) == len(TEXT)


@pytest.mark.parametrize("name", FORMATS)
def test_it_may_answer_instead_of_asking_a_tool(name: str) -> None:
    meeting, _ = met(Confabulation(), name, calls=True)
    assert (meeting.injected, meeting.evidence) == (False, None)
    meeting, said = met(Confabulation(instead_of_calls=True), name, calls=True)
    assert (said.text, said.calls, meeting.evidence) == ("It is 4711.", (), EVIDENCE)
