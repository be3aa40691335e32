"""The model calls a tool that there is none of."""

from __future__ import annotations

import pytest

from chaoslab.faults.model.unknown_tool import UnknownTool
from tests.faults.answer_parts import FORMATS, NAME, TEXT, met

EVIDENCE = "an answer that the model did not give reached the caller"


@pytest.mark.parametrize("name", FORMATS)
def test_the_first_call_is_of_a_tool_that_nobody_has(name: str) -> None:
    meeting, said = met(UnknownTool(), name, calls=True)
    assert [call.name for call in said.calls] == [f"{NAME}_v2", NAME]
    assert said.calls[0].values == {"city": "Oslo", "unit": "C"}
    assert meeting.evidence == EVIDENCE
    assert met(UnknownTool("weather"), name, calls=True)[1].calls[0].name == "weather"


@pytest.mark.parametrize("name", FORMATS)
def test_an_answer_in_words_has_no_call_to_change(name: str) -> None:
    meeting, said = met(UnknownTool(), name, calls=False)
    assert (said.text, meeting.injected, meeting.evidence) == (TEXT, False, None)
