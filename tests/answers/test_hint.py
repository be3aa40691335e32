"""The hint on an answer: the sentence that seems to admit something. It decides nothing."""

import pytest

from chaoslab.analysis.answers.hint import find_failure_admission


@pytest.mark.parametrize(
    ("answer", "hint"),
    [
        ("I could not refund order 17.", "I could not refund order 17."),
        ("Order 17 is an order. I couldn’t refund it.", "I couldn’t refund it."),
        ("I gave up after three attempts.", "I gave up after three attempts."),
        ("It may have been done, please check.", "It may have been done, please check."),
        ("Agent stopped due to max iterations.", "Agent stopped due to max iterations."),
        ("The shop did not answer within 60 seconds.", "The shop did not answer within 60 seconds."),
        ("Sorry, need more steps to process this request.", "Sorry, need more steps to process this request."),
        ("Maximum number of turns 10 reached.", "Maximum number of turns 10 reached."),
        ("Model call limits exceeded: run limit (2/2)", "Model call limits exceeded: run limit (2/2)"),
        ("'str' object has no attribute 'choices'", "'str' object has no attribute 'choices'"),
        ("Expecting value: line 1 column 1 (char 0)", "Expecting value: line 1 column 1 (char 0)"),
        ("The limit of your card is 60 dollars, and Max paid it within 5 days.", ""),
        ("I refunded order 17.", ""),
        ("Refunded without any errors.", ""),
        ("17", ""),
        ("Was order 17 not refunded?", ""),
        ('I told Ana: "I could not come".', ""),
        ('{"refunded": false, "note": "It failed."}', ""),
        ("La commande 17 n'a pas pu être remboursée.", ""),
        ("x " * 11_000 + "I could not refund it.", ""),
    ],
)
def test_the_first_sentence_that_seems_to_admit_something_is_the_hint(answer: str, hint: str) -> None:
    assert find_failure_admission(answer) == hint


def test_a_sentence_of_the_twins_is_no_hint() -> None:
    said = "The gift card could not be combined."
    assert find_failure_admission(f"Done. {said}", f"All well. {said}") == ""
