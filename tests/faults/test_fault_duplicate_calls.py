"""The model makes the same call twice in one answer."""

from __future__ import annotations

import pytest

from chaoslab.faults.model.duplicate_calls import DuplicateCalls
from tests.faults.answer_parts import FORMATS, TEXT, met

EVIDENCE = "an answer that the model did not give reached the caller"


@pytest.mark.parametrize("name", FORMATS)
def test_each_call_stands_twice_and_no_two_have_one_id(name: str) -> None:
    meeting, said = met(DuplicateCalls(), name, calls=True)
    cities = [(call.values or {})["city"] for call in said.calls]
    assert (cities, meeting.evidence) == (["Oslo", "Oslo", "Paris", "Paris"], EVIDENCE)
    ids = [native.get("call_id") or native.get("id") for call in said.calls if (native := call.native)]
    assert len(set(ids)) == (1 if name == "gemini" else 4), "Gemini's calls have no ids"


def test_or_more_often() -> None:
    assert len(met(DuplicateCalls(3), "chat", calls=True)[1].calls) == 6


@pytest.mark.parametrize("name", FORMATS)
def test_an_answer_in_words_has_no_call_to_change(name: str) -> None:
    meeting, said = met(DuplicateCalls(), name, calls=False)
    assert (said.text, meeting.injected, meeting.evidence) == (TEXT, False, None)
