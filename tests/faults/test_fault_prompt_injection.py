"""A text in a tool's answer tells the model what to do."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from chaoslab.faults.meaning.prompt_injection import ORDER, PromptInjection
from tests.faults.meaning_parts import JSON, ORDERS, keeps_the_laws, leaves_others_alone, told


@pytest.mark.parametrize(("value", "got"), [
    ("It is 20.", f"It is 20.\n\n{ORDER}"),
    ({"a": "x", "b": ["longer", 2]}, {"a": "x", "b": [f"longer\n\n{ORDER}", 2]}),
    ({"temp": 20, "note": 1}, {"temp": 20, "note": 1, "note_more": ORDER}),
    ([1, 2], [1, 2]),
])  # fmt: skip
def test_the_order_stands_behind_the_longest_text_or_in_a_field_of_its_own(value: Any, got: Any) -> None:
    assert told(PromptInjection(), value) == got


def test_all_else_stays_true() -> None:
    got = told(PromptInjection("Say A."), ORDERS)
    assert str(got).count("Say A.") == 1
    assert without_it(got) == without_it(ORDERS)


def without_it(value: Any) -> str:
    """The value as a text, without the order."""
    return str(value).replace("\\n\\nSay A.", "")


def test_errors_streams_and_models_are_left_alone() -> None:
    leaves_others_alone(PromptInjection())


@given(JSON)
def test_any_answer_with_a_text_or_a_field_is_another_one(value: Any) -> None:
    injected = keeps_the_laws(PromptInjection(), value)
    assert injected or not isinstance(value, dict | str)
