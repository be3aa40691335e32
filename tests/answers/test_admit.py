"""The sentences of an answer admit, claim, do both, or neither: three values, and no guess."""

import pytest

from chaoslab.analysis.answers.admit import admits, read

DEEDS = ("refund_order",)


def told(answer: str) -> tuple[bool, bool]:
    """True for each of the two if a sentence admits and if one claims."""
    found = read(answer, DEEDS)
    return bool(found.admits), bool(found.claims)


@pytest.mark.parametrize(
    ("answer", "admitted", "claimed"),
    [
        ("I could not refund order 17.", True, False),
        ("I couldn’t refund it.", True, False),
        ("I can't help with that.", True, False),
        ("The shop is unavailable.", True, False),
        ("I refunded order 17.", False, True),
        ("It was completed successfully.", False, True),
        ("I refunded order 17. The mail failed.", True, True),
        ("Order 17 is an order.", False, False),
        ("17", False, False),
        ("| order | refunded |\n|---|---|\n| 17 | no |", False, False),
        ("La commande 17 n'a pas pu être remboursée.", False, False),
        ("支払いに失敗しました。", False, False),
        ('{"refunded": false, "note": "It failed."}', False, False),
        ('I told Ana: "I could not come".', False, False),
        ("Should it fail, write to us.", False, False),
        ("If the mail could not be sent, write to us.", False, False),
        ("Was order 17 refunded?", False, False),
        ("Refunded without any errors.", False, True),
    ],
)
def test_an_answer_admits_claims_both_or_neither(answer: str, admitted: bool, claimed: bool) -> None:
    assert told(answer) == (admitted, claimed)
    assert admits(answer) is (admitted and not read(answer).claims)


def test_a_sentence_of_the_twins_admits_nothing() -> None:
    assert not read("The gift card could not be combined.", DEEDS, "The gift card could not be combined.").admits


def test_the_past_of_an_effects_verb_claims_it() -> None:
    for deed, said in (
        ("send_mail", "I sent it."),
        ("message_sent", "Sent."),
        ("copy_file", "Copied."),
        ("plan", "Planned."),
    ):
        assert read(said, (deed,)).claims, deed
    assert not read("I sent it.", ("refund",)).claims


def test_an_answer_that_is_too_long_has_no_sentences() -> None:
    assert told("x " * 11_000 + "I could not refund it.") == (False, False)


@pytest.mark.parametrize(
    ("answer", "admits_", "doubts", "earlier", "overcome"),
    [
        ("The first attempt failed.", 0, 0, 1, True),
        ("I could not confirm the first attempt.", 1, 1, 0, False),
        ("The refund failed. It is done on the second request.", 1, 0, 1, True),
        ("I could not refund it.", 1, 0, 0, False),
        ("I could not refund it. Done.", 1, 0, 0, True),
    ],
)
def test_a_sentence_about_an_earlier_attempt_neither_admits_nor_claims(
    answer: str, admits_: int, doubts: int, earlier: int, overcome: bool
) -> None:
    found = read(answer, DEEDS)
    assert (len(found.admits), len(found.doubts), len(found.earlier)) == (admits_, doubts, earlier)
    assert (not found.admits or bool(found.claims or found.earlier)) is overcome


def test_only_a_sentence_about_an_attempt_that_follows_an_admission_overcomes_it() -> None:
    assert read("The refund failed. It is done on the second request.", DEEDS).overcome
    assert not read("The first attempt failed. I could not refund it.", DEEDS).overcome


@pytest.mark.parametrize("answer", ["Neither order was touched.", "There is no refund.", "Order 17 has none."])
def test_a_negation_that_admits_nothing_by_itself_denies(answer: str) -> None:
    found = read(answer, DEEDS)
    assert (found.denies, found.admits, found.claims) == ([answer.casefold()], [], [])
    assert not read(answer, DEEDS, answer).denies


@pytest.mark.parametrize(
    "answer",
    [
        "I am not in a position to refund it.",
        "I have no list of it.",
        "Order 17: not refunded",
        "It remains to be done.",
        "I gave up after three attempts.",
        "Both the first attempt and the next one failed.",
    ],
)
def test_an_inability_is_an_admission(answer: str) -> None:
    assert told(answer) == (True, False)
