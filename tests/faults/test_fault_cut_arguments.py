"""The stream ends in the middle of a tool call's arguments, as if it had ended as it should."""

from __future__ import annotations

import pytest

from chaoslab.faults.stream.cut_arguments import CutArguments
from tests.faults.answer_parts import CITIES, FORMATS, OSLO, PARIS, TEXT, met, retold, streamed

EVIDENCE = "an answer that the model did not give reached the caller"


@pytest.mark.parametrize("name", ["chat", "responses", "anthropic"])
def test_the_last_calls_arguments_end_in_their_middle_and_the_stream_properly(name: str) -> None:
    told = retold(CutArguments(), name, streamed(name, "", *CITIES))
    assert [call.arguments for call in told.said.calls] == [OSLO, PARIS[: len(PARIS) // 2]]
    assert told.said.calls[1].values is None
    assert (told.changed, told.evidence) == (True, EVIDENCE)
    end = {"chat": b'"tool_calls"', "anthropic": b'"tool_use"', "responses": b'"response.completed"'}
    assert end[name] in told.read.body


@pytest.mark.parametrize("part", [0.0, 0.99])
def test_wherever_they_end_they_are_no_json(part: float) -> None:
    (_, call) = retold(CutArguments(part), "chat", streamed("chat", "", *CITIES)).said.calls
    assert (call.values, call.arguments) in [(None, "{"), (None, PARIS[:-1])]


def test_arguments_that_are_objects_pass_unchanged() -> None:
    assert not retold(CutArguments(), "gemini", streamed("gemini", "", *CITIES)).changed


@pytest.mark.parametrize("name", FORMATS)
def test_words_and_a_whole_answer_pass_unchanged(name: str) -> None:
    assert not retold(CutArguments(), name, streamed(name, TEXT)).changed
    assert not met(CutArguments(), name, calls=True)[0].injected
