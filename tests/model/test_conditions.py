"""The words of a condition, and what they hold of."""

import pytest

from chaoslab.model._conditions import condition_to_question, make_condition, replace_freezing_words
from chaoslab.model._story import StepResult

RAIN = StepResult("", items=("light rain", "Oslo"), numbers=(12.4,))
EMPTY, FULL = StepResult("", nothing=True), StepResult("")


@pytest.mark.parametrize(
    ("words", "found", "holds"),
    [
        ("it rains in Oslo", RAIN, True),
        ("it is not raining in Oslo", RAIN, False),
        ("I need an umbrella", RAIN, True),
        ("the sun shines", RAIN, False),
        ("it is warmer than 10 degrees", RAIN, True),
        ("it is not warmer than 10 degrees", RAIN, False),
        ("it is below freezing", RAIN, False),
        ("the result is more than 10", FULL, False),
        ("there is a message from Ana", FULL, True),
        ("there are no messages from Ana", FULL, False),
        ("there are no messages from Ana", EMPTY, True),
        ("I am free on Friday", EMPTY, True),
        ("I'm not free on Friday", EMPTY, False),
        ("I'm not free on Friday", FULL, True),
    ],
)
def test_a_condition_holds_of_what_was_found_or_not(words: str, found: StepResult, holds: bool) -> None:
    assert make_condition(replace_freezing_words(words))(found) is holds


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        ("there are no messages from Zoe", "are there any messages from Zoe"),
        ("there is a message from Zoe", "are there any message from Zoe"),
        ("I have something on Friday", "do I have something on Friday"),
        ("I'm free tomorrow", "am I free tomorrow"),
        ("Ana has written", "has Ana written"),
        ("Ana replied to me", "did Ana write to me"),
        ("the moon is full", "the moon is full"),
    ],
)
def test_a_condition_becomes_the_question_that_settles_it(words: str, asked: str) -> None:
    assert condition_to_question(words) == asked
