"""The same value in another spelling is the same, and what tells of an answer's making is no value."""

from __future__ import annotations

import pytest

from chaoslab.analysis.answers.compare import Likeness, compare
from chaoslab.analysis.answers.facts import shows

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
        ("It is 12.5 km away.", "It is 12.5 miles away.", OTHER),
        ("I sent Ana's invitation.", "I sent the invitation to Ana.", SAME),
        ("The rate is 1.08.", "The first call failed with 502 Bad Gateway. The rate is 1.08.", SAME),
        ("The rate is 1.08.", "| Attempt | Result |\n|---|---|\n| 1 | Error |\n| 2 | 1.08 |", SAME),
        ("The rate is 1.08.", "The rate is 1.08[^1].\n\n[^1]: From the tool.", SAME),
        ("## Balance: 1200", "## Balance: 1800", OTHER),
        ("| Oslo | Rome |\n|---|---|\n| 12 | 20 |", "| Rome | Oslo |\n|---|---|\n| 12 | 20 |", UNCLEAR),
        ("Oslo has 12, Rome has 20.", "Rome has 12, Oslo has 20.", OTHER),
        ("You have 2 requests open.", "You have 3 requests open.", OTHER),
        ("I ran call 3.", "I ran call 4.", OTHER),
        ("Order 17 is shipped.", "Order 17 is not shipped.", UNCLEAR),
        ("Alice owes Bob 5.", "Bob owes Alice 5.", UNCLEAR),
        ("It is 20 in Oslo on Monday.", "On Monday it is 20 in Oslo.", SAME),
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


PRICE, DAY = "The price is 1200 euros.", "The demo is on 7 March 2026."


@pytest.mark.parametrize(
    ("twin", "answer", "likeness"),
    [
        (PRICE, "The price is 1,200.00 euros.", SAME),
        (PRICE, "The price is 1.200,00 euros.", SAME),
        (PRICE, "The price is 1'200 euros.", SAME),
        (PRICE, "The price is 1\u202f200 euros.", SAME),
        (PRICE, "The price is twelve hundred euros.", SAME),
        (PRICE, "The price is one thousand two hundred euros.", SAME),
        (PRICE, "The price is 1.2k euros.", SAME),
        (PRICE, "The price is 1.2 thousand euros.", SAME),
        ("There are 21 seats.", "There are twenty-one seats.", SAME),
        ("There are 17 seats.", "There are seventeen seats.", SAME),
        ("It is -5 degrees.", "It is minus 5 degrees.", SAME),
        ("It is -5 degrees.", "It is 5 degrees below zero.", SAME),
        (DAY, "The demo is on 07.03.2026.", SAME),
        (DAY, "The demo is on 2026/03/07.", SAME),
        ("It takes 90 minutes.", "It takes 1.5 hours.", SAME),
        ("It is 2 km away.", "It is 2,000 m away.", SAME),
        # It may be the same, if it is read so.
        (PRICE, "The price is 1.200 euros.", UNCLEAR),
        (PRICE, "The price is 1 200 euros.", UNCLEAR),
        (DAY, "The demo is on 03/07/2026.", UNCLEAR),
        (DAY, "The demo is on 07/03/2026.", UNCLEAR),
        (DAY, "The demo is on 7 March.", UNCLEAR),
        ("It takes 90 minutes.", "It takes 1 h 30 min.", UNCLEAR),
        ("The rate is 12.5%.", "The rate is 0.125.", UNCLEAR),
        # It is another value, whichever way it is read.
        ("There are 3 seats.", "There are three hundred seats.", OTHER),
        (PRICE, "The price is 12,00 euros.", OTHER),
        (PRICE, "The price is 1.3k euros.", OTHER),
        (PRICE, "The price is twelve thousand euros.", OTHER),
        (DAY, "The demo is on 04/08/2026.", OTHER),
        (DAY, "The demo is on 8 March.", OTHER),
        ("It is 2 km away.", "It is 3,000 m away.", OTHER),
        ("It takes 90 minutes.", "It takes 2 hours.", OTHER),
    ],
)
def test_a_number_or_a_date_in_another_notation_is_no_other_value(twin: str, answer: str, likeness: Likeness) -> None:
    found = compare(twin, answer, tries=False)
    assert found.likeness is likeness, found.said


def test_a_stated_number_is_found_in_another_notation() -> None:
    assert shows(["1200"], "It costs twelve hundred euros, or 1.200,00.")
    assert not shows(["1200"], "It costs twelve thousand euros, or 1.2.")
    assert shows(["2026-03-07"], "It is on 07.03.2026.")


def test_a_number_as_a_text_is_the_same_in_a_structure() -> None:
    assert compare('{"paid": 1200}', '{"paid": "1,200.00"}').likeness is SAME
    assert compare('{"paid": 1200}', '{"paid": "1,300.00"}').likeness is OTHER


def test_an_answer_of_unreadable_signs_is_not_taken_for_the_right_one() -> None:
    found = compare("I refunded 40 euros.", "I r\ufffdf\ufffdnd\ufffdd 40 \ufffd\ufffdr\ufffds.", tries=False)
    assert (found.likeness, found.said) == (UNCLEAR, "it has signs that cannot be read (\ufffd)")


def test_only_values_that_are_there_are_named_as_the_same() -> None:
    asked = "Refund order 17."
    found = compare("I refunded 40 EUR for order 17.", "I refunded 40 EUR.", asked=asked, tries=False, done=True)
    assert (found.likeness, found.said) == (SAME, "the same values: 40")
    found = compare("I refunded order 17.", "Done as you wished.", asked=asked, tries=False, done=True)
    assert (found.likeness, found.said) == (SAME, "no other values")


def test_the_name_of_an_error_is_no_name_that_an_answer_adds() -> None:
    given = "A ConnectionResetError occurred, but the retry went through: 50 EUR paid."
    found = compare("Paid 50 EUR for order 17.", given, asked="Pay order 17.", tries=False, done=True)
    assert found.likeness is SAME, found.said


def test_a_number_in_a_phrase_is_no_value() -> None:
    found = compare("I paid 50 EUR.", "Thanks a million! I paid 50 EUR.", tries=False)
    assert found.likeness is SAME, found.said
