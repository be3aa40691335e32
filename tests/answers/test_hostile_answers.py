"""The judge reads a hostile text of any length."""

import pytest

from chaoslab.analysis.answers.compare import Likeness, compare_answers
from chaoslab.analysis.answers.hint import find_failure_admission
from chaoslab.analysis.answers.values import contains_any_spelling


@pytest.mark.parametrize(
    "text",
    ["1" * 100_000, "111," * 25_000 + "a", "“" * 50_000, "'a" * 50_000, '"' * 50_001, "could not " * 10_000,
     "2026-1-" * 12_000, "1e1" * 25_000, "1." * 50_000, "1e" + "9" * 50_000, "[" * 50_000, '{"a":' * 10_000],
    ids=lambda text: text[:9],
)  # fmt: skip
def test_an_answer_of_any_length_is_read(text: str) -> None:
    assert not contains_any_spelling(["no such fact"], text)
    assert not find_failure_admission(text)
    assert compare_answers(text, text[:-1]).likeness is Likeness.UNCLEAR
    assert compare_answers(text, text).likeness is Likeness.SAME
