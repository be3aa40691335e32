"""The answer ends in the middle, since the tokens it may have are used up."""

from __future__ import annotations

import pytest

from chaoslab.faults.model.finish_length import FinishLength
from tests.faults.answer_parts import FORMATS, ended, met

EVIDENCE = "an answer that the model did not give reached the caller"


@pytest.mark.parametrize("name", FORMATS)
def test_a_share_of_the_words_is_left_and_the_format_says_why(name: str) -> None:
    meeting, said = met(FinishLength(0.5), name, calls=False)
    assert (said.text, meeting.evidence) == ("It is 21.5 degrees in", EVIDENCE)
    assert ended(name, meeting) == {
        "chat": "length", "responses": "max_output_tokens", "anthropic": "max_tokens", "gemini": "MAX_TOKENS",
    }[name]  # fmt: skip


@pytest.mark.parametrize(("part", "text"), [(0.0, ""), (1.0, "It is 21.5 degrees in Oslo and 30 in")])
def test_at_least_a_word_is_missing(part: float, text: str) -> None:
    assert met(FinishLength(part), "chat", calls=False)[1].text == text
