"""A stated fact shows in an answer as whole words and whole numbers, in any notation."""

import pytest

from chaoslab.analysis.answers.values import contains_any_spelling


@pytest.mark.parametrize(
    ("spelling", "text", "found"),
    [
        ("4", "It is 4.", True),
        ("4", "It is 14.", False),
        ("4", "It is 41.", False),
        ("4", "It is 4.5.", False),
        ("4", "It is 0.4.", False),
        ("4", "It is -4.", False),
        ("-4", "It is −4 °C.", True),
        ("4", "From 2-4 degrees", True),
        ("4", "The event 4f2a", False),
        ("4", "Room B4", False),
        ("4", "Version 3.4.1", False),
        ("4", "It is 4°C", True),
        ("12", "12km away", True),
        ("1024", "1,024 of them", True),
        ("1,024", "1024 of them", True),
        ("1024", "1,024.0", True),
        ("24", "1,024 of them", False),
        ("12.0", "a dozen, 12", True),
        ("12", "12.00 dollars", True),
        ("42", "code 0042", False),
        ("0042", "code 0042", True),
        ("0.5", ".5", True),
        ("1000", "1e3", True),
        ("São Paulo", "in sao  paulo today", True),
        ("sao paulo", "in SÃO\nPAULO", True),
        ("rain", "a train", False),
        ("rain", "Rain, later", True),
        ("light rain", "light and rain", False),
        ("Ana's", "ana’s plan", True),
        ("15:00", "at 2026-06-02T15:00:00Z", True),
        ("15:00", "at 5:00", False),
        ("LH123", "flight lh123", True),
        ("123", "flight LH123", False),
        ("東京", "東京は晴れです", True),
        ("→", "a → b", True),
        ("", "anything", False),
    ],
)
def test_a_spelling_shows_as_whole_words_and_whole_numbers(spelling: str, text: str, found: bool) -> None:
    assert contains_any_spelling([spelling], text) is found


def test_absurd_numbers_are_told_apart_and_not_written_out() -> None:
    assert contains_any_spelling(["1e1000000"], "it is 1e1000000")
    assert not contains_any_spelling(["1e1000000"], "it is 1e1000001")
    assert not contains_any_spelling(["1" * 40], "1" * 39 + "2")
    assert contains_any_spelling(["-0"], "0.00")


@pytest.mark.parametrize(
    ("fact", "answer", "found"),
    [
        ("16:45", "It starts at 4:45 pm.", True),
        ("16:45", "It starts at 4:45 am.", False),
        ("16:45", "It is at a quarter to five.", False),
        ("16:45", "It is at a quarter to six.", False),
        ("20 °C", "It is 68 °F.", False),
        ("20 °C", "It is 86 °F.", False),
        ("1200", "It costs 1.200,00.", True),
        ("1200", "It costs twelve hundred euros, or 1.2.", False),
        ("2026-03-07", "It is on 07.03.2026.", True),
    ],
)
def test_a_stated_value_is_found_in_another_notation(fact: str, answer: str, found: bool) -> None:
    assert contains_any_spelling([fact], answer) is found
