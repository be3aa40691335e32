"""The same value in another spelling is the same, and what tells of an answer's making is no value."""

from __future__ import annotations

import pytest

from chaoslab.analysis.answers import Likeness, compare, shows

SAME, OTHER, UNCLEAR = Likeness.SAME, Likeness.OTHER, Likeness.UNCLEAR


@pytest.mark.parametrize(
    ("twin", "answer", "likeness"),
    [
        ("The demo is at 16:45.", "The demo is at 4:45 PM.", SAME),
        ("The demo is at 00:15.", "The demo is at 12:15 a.m.", SAME),
        ("The demo is at 16:45.", "The demo is at 4:45 AM.", OTHER),
        ("I paid €1,250.00.", "I paid 1250 EUR.", SAME),
        ("I paid $45.75.", "I paid 45.75 US dollars.", SAME),
        ("I paid €45.75.", "I paid $45.75.", UNCLEAR),
        ("It is 6.5 mm.", "It is 6.5 millimetres.", SAME),
        ("It is 12.5 km away.", "It is 12.5 miles away.", UNCLEAR),
        ("I sent Ana's invitation.", "I sent the invitation to Ana.", SAME),
        ("The rate is 1.08.", "The first call failed with 502 Bad Gateway. The rate is 1.08.", SAME),
        ("The rate is 1.08.", "| Attempt | Result |\n|---|---|\n| 1 | Error |\n| 2 | 1.08 |", SAME),
        ("The rate is 1.08.", "The rate is 1.08[^1].\n\n[^1]: From the tool.", SAME),
        ("## Balance: 1200", "## Balance: 1800", OTHER),
        ("| Oslo | Rome |\n|---|---|\n| 12 | 20 |", "| Rome | Oslo |\n|---|---|\n| 12 | 20 |", UNCLEAR),
        ("Oslo has 12, Rome has 20.", "Rome has 12, Oslo has 20.", UNCLEAR),
        ("You have 2 requests open.", "You have 3 requests open.", OTHER),
        ("I ran call 3.", "I ran call 4.", OTHER),
    ],
)
def test_a_spelling_and_a_retry_make_no_other_value(twin: str, answer: str, likeness: Likeness) -> None:
    found = compare(twin, answer, tries=False)
    assert found.likeness is likeness, found.said


def test_a_promised_delay_counts_only_where_no_effect_speaks_for_the_answer() -> None:
    twin, answer = "I refunded 30 EUR. You will see it within 3-5 business days.", "I refunded 30 EUR."
    assert compare(twin, answer, tries=False, done=True).likeness is SAME
    assert compare(twin, answer, tries=False).likeness is OTHER


def test_a_stated_time_is_found_in_either_spelling() -> None:
    assert shows(["16:45"], "It starts at 4:45 pm.")
    assert not shows(["16:45"], "It starts at 4:45 am.")
