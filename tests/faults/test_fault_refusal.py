"""The model refuses politely, though it was asked for nothing wrong."""

from __future__ import annotations

import pytest

from chaoslab.faults.model.refusal import Refusal
from tests.faults.answer_parts import FORMATS, ended, met

EVIDENCE = "an answer that the model did not give reached the caller"


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("calls", [False, True])
def test_it_says_that_it_cannot_and_calls_nothing(name: str, *, calls: bool) -> None:
    meeting, said = met(Refusal("No."), name, calls=calls)
    assert (said.text, said.calls, meeting.evidence) == ("No.", (), EVIDENCE)
    assert ended(name, meeting) in ("stop", "completed", "end_turn", "STOP")
