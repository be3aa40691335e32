"""The stream ends in the middle of the answer and says that the model meant it so."""

from __future__ import annotations

import pytest

from chaoslab.faults.stream.early_stop import EarlyStop
from tests.faults.answer_parts import CITIES, FORMATS, TEXT, met, retold, streamed

EVIDENCE = "an answer that the model did not give reached the caller"


@pytest.mark.parametrize("name", FORMATS)
def test_half_of_the_words_come_and_nothing_tells_of_the_rest(name: str) -> None:
    told = retold(EarlyStop(), name, streamed(name, TEXT, CITIES[0]))
    assert (told.said.text, told.said.calls) == ("It is 21.5 degrees in", ())
    assert (told.changed, told.evidence) == (True, EVIDENCE)
    end = {"chat": b'"stop"', "anthropic": b'"end_turn"', "gemini": b'"STOP"', "responses": b'"response.completed"'}
    assert end[name] in told.read.body


@pytest.mark.parametrize("name", FORMATS)
def test_of_calls_alone_some_come(name: str) -> None:
    told = retold(EarlyStop(), name, streamed(name, "", *CITIES))
    assert [call.values for call in told.said.calls] == [CITIES[0]]
    assert told.evidence == EVIDENCE


@pytest.mark.parametrize(("part", "text"), [(0.0, ""), (1.0, "It is 21.5 degrees in Oslo and 30 in")])
def test_at_least_a_word_is_missing(part: float, text: str) -> None:
    assert retold(EarlyStop(part), "chat", streamed("chat", TEXT)).said.text == text


@pytest.mark.parametrize("name", FORMATS)
def test_a_single_call_and_a_whole_answer_pass_unchanged(name: str) -> None:
    assert not retold(EarlyStop(), name, streamed(name, "", CITIES[0])).changed
    meeting, said = met(EarlyStop(), name, calls=False)
    assert (said.text, meeting.injected, meeting.evidence) == (TEXT, False, None)
