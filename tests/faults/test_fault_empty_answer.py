"""The model says nothing."""

from __future__ import annotations

import pytest

from chaoslab.faults.model.empty_answer import EmptyAnswer
from tests.faults.answer_parts import FORMATS, ended, met

EVIDENCE = "an answer that the model did not give reached the caller"


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("calls", [False, True])
def test_neither_words_nor_calls_are_left_and_it_ended_as_usual(name: str, *, calls: bool) -> None:
    meeting, said = met(EmptyAnswer(), name, calls=calls)
    assert (said.text, said.calls, meeting.evidence) == ("", (), EVIDENCE)
    assert ended(name, meeting) in ("stop", "completed", "end_turn", "STOP")
