"""Go's numbers, as its encoder was heard to write them; kept here where there is no Go to ask."""

from __future__ import annotations

import pytest

from chaoslab.wire.server.decode import depth
from chaoslab.wire.server.spelling import dump, float32, sample


def test_depth_is_that_of_brackets_outside_of_strings() -> None:
    assert [depth(text) for text in (b"1", b"[[]]", b"[[],[{}]]", b'["[[[[\\"[[",[]]', b"[" * 9)] == [0, 2, 3, 2, 9]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.1, "0.1"),
        (0.123456789, "0.12345679"),
        (1.0, "1"),
        (-0.0, "-0"),
        (123456789.0, "123456790"),
        (1e-6, "0.000001"),
        (1e-7, "1e-7"),
        (1e-45, "1e-45"),
        (1e20, "100000000000000000000"),
        (1e21, "1e+21"),
        (3.4028235e38, "3.4028235e+38"),
    ],
)
def test_a_toxicity_has_32_bits_and_as_many_digits_as_it_needs(value: float, text: str) -> None:
    assert dump(float32(value)) == text


def test_what_a_browser_could_take_for_html_is_escaped() -> None:
    assert dump({"<é>": ["&\u2028", None, True, 7]}) == '{"\\u003cé\\u003e":["\\u0026\\u2028",null,true,7]}'


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (743.0, "743"), (999_999.0, "999999"), (1_234_567.0, "1.234567e+06"), (0.25, "0.25"), (1e-5, "1e-05")],
)
def test_a_sample_has_an_exponent_from_a_million_on(value: float, text: str) -> None:
    assert sample(value) == text
