"""A tool call lacks an argument."""

from __future__ import annotations

import pytest

from chaoslab.faults.model.missing_arguments import MissingArguments
from tests.faults.answer_parts import FORMATS, TEXT, met

EVIDENCE = "an answer that the model did not give reached the caller"


@pytest.mark.parametrize("name", FORMATS)
def test_the_first_calls_last_argument_is_missing(name: str) -> None:
    meeting, said = met(MissingArguments(), name, calls=True)
    assert [call.values for call in said.calls] == [{"city": "Oslo"}, {"city": "Paris", "unit": "C"}]
    assert meeting.evidence == EVIDENCE


@pytest.mark.parametrize("name", FORMATS)
def test_or_all_of_them(name: str) -> None:
    assert met(MissingArguments(all=True), name, calls=True)[1].calls[0].values == {}


@pytest.mark.parametrize("name", FORMATS)
def test_an_answer_in_words_has_no_call_to_change(name: str) -> None:
    meeting, said = met(MissingArguments(), name, calls=False)
    assert (said.text, meeting.injected, meeting.evidence) == (TEXT, False, None)
