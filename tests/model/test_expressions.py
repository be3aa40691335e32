"""Arithmetic in words, and words that are none."""

import pytest

from chaoslab.model._expressions import IT, extract_arithmetic


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("what is 17 times 24", "17 * 24"),
        ("12*7", "12*7"),
        ("(2 + 3) * 4", "(2 + 3) * 4"),
        ("one hundred and five minus twenty-four", "105 - 24"),
        ("the product of 3 and 4", "3 * 4"),
        ("the average of 2, 4 and 9", "(2 + 4 + 9) / 3"),
        ("the difference between 10 and 4", "10 - 4"),
        ("subtract 5 from 20", "20 - 5"),
        ("divide 144 by 12", "144 / 12"),
        ("2 to the 8th power", "2 ^ 8"),
        ("5 factorial", "factorial(5)"),
        ("half of 90", "90 / 2"),
        ("what is 6 x 7", "6 * 7"),
        ("25 percent of 80", "25 / 100 * 80"),
        ("2 * pi * 3", "2 * pi * 3"),
        ("10^10^10", "10^10^10"),
        ("1/0", "1/0"),
        ("two thousand plus three", "2000 + 3"),
        ("round 3.14159 to 2 decimals", "round(3.14159, 2)"),
        ("10 / 3 to the nearest integer", "round(10 / 3, 0)"),
        ("(what is 2 * 4)", "2 * 4"),
        ("- 7 *", None),
        ("Who wrote Faust", None),
        ("I have 3 cats", None),
        ("see you at 10", None),
    ],
)
def test_words_become_an_expression(text: str, written: str | None) -> None:
    assert extract_arithmetic(text) == written


def test_the_result_stands_for_itself_until_it_is_known() -> None:
    assert extract_arithmetic("add 5 to the result", it=True) == f"{IT} + 5"
    assert extract_arithmetic("multiply it by 3", it=True) == f"{IT} * 3"
