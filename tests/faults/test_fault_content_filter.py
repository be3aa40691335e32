"""The provider holds the answer back for its content."""

from __future__ import annotations

import pytest

from chaoslab.faults.model.content_filter import ContentFilter
from tests.faults.answer_parts import FORMATS, ended, met

EVIDENCE = "an answer that the model did not give reached the caller"


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("calls", [False, True])
def test_nothing_is_left_and_the_format_says_why(name: str, *, calls: bool) -> None:
    meeting, said = met(ContentFilter(), name, calls=calls)
    assert (said.text, said.calls, meeting.evidence) == ("", (), EVIDENCE)
    assert ended(name, meeting) == {
        "chat": "content_filter", "responses": "content_filter", "anthropic": "refusal", "gemini": "SAFETY",
    }[name]  # fmt: skip
