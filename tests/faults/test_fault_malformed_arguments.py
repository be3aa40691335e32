"""The arguments of a tool call are no JSON."""

from __future__ import annotations

import pytest

from chaoslab.faults.model.malformed_arguments import MalformedArguments
from tests.faults.answer_parts import CITIES, FORMATS, PARIS, TEXT, met, retold, streamed

EVIDENCE = "an answer that the model did not give reached the caller"


@pytest.mark.parametrize("name", ["chat", "responses"])
def test_the_first_calls_arguments_end_in_the_middle(name: str) -> None:
    meeting, said = met(MalformedArguments(0.5), name, calls=True)
    assert [call.arguments for call in said.calls] == ['{"city": "Oslo', PARIS]
    assert (said.calls[0].values, meeting.evidence) == (None, EVIDENCE)


@pytest.mark.parametrize("name", ["chat", "responses", "anthropic"])
def test_a_streamed_answer_has_arguments_as_text(name: str) -> None:
    told = retold(MalformedArguments(0.5), name, streamed(name, "", *CITIES))
    assert [call.arguments for call in told.said.calls] == ['{"city": "Oslo', PARIS]
    assert told.evidence == EVIDENCE


@pytest.mark.parametrize("name", ["anthropic", "gemini"])
def test_where_arguments_are_objects_a_value_is_of_another_type(name: str) -> None:
    meeting, said = met(MalformedArguments(0.5), name, calls=True)
    assert [call.values for call in said.calls] == [{"city": ["Oslo"], "unit": "C"}, {"city": "Paris", "unit": "C"}]
    assert meeting.evidence == EVIDENCE


@pytest.mark.parametrize("name", FORMATS)
def test_an_answer_in_words_has_no_call_to_change(name: str) -> None:
    meeting, said = met(MalformedArguments(), name, calls=False)
    assert (said.text, meeting.injected, meeting.evidence) == (TEXT, False, None)
