"""The hint on an answer: the sentence that seems to admit something. It decides nothing."""

import pytest

from chaoslab.analysis.answers.hint import find_admission


@pytest.mark.parametrize(
    ("answer", "hint"),
    [
        ("I could not refund order 17.", "I could not refund order 17."),
        ("Order 17 is an order. I couldn’t refund it.", "I couldn’t refund it."),
        ("I gave up after three attempts.", "I gave up after three attempts."),
        ("It may have been done, please check.", "It may have been done, please check."),
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
    assert find_admission(answer) == hint


def test_a_sentence_of_the_twins_is_no_hint() -> None:
    said = "The gift card could not be combined."
    assert find_admission(f"Done. {said}", f"All well. {said}") == ""
