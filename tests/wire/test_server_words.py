"""Go's numbers, as its encoder was heard to write them; kept here where there is no Go to ask."""

import re

import pytest

from chaoslab.wire.server._address import split_address
from chaoslab.wire.server._decode import depth, read_json
from chaoslab.wire.server._spelling import ApiError, dump, float32, sample


def test_depth_is_that_of_brackets_outside_of_strings() -> None:
    assert [depth(text) for text in (b"1", b"[[]]", b"[[],[{}]]", b'["[[[[\\"[[",[]]', b"[" * 9)] == [0, 2, 3, 2, 9]


@pytest.mark.parametrize("text", [b"1.", b"1.x", b"1e", b"1E+", b"[1.]", b"-", b"NaN", b"Infinity", b"[" * 20_000])
def test_a_number_that_breaks_off_and_words_for_none_are_no_json(text: bytes) -> None:
    with pytest.raises(ApiError) as error:
        read_json(text)
    assert (error.value.status, error.value.message[:18]) == (400, "bad request body: ")


@pytest.mark.parametrize(("text", "value"), [(b"1.5e3 x", "1.5e3"), (b" 1 .", "1"), (b'"1"e', "1"), (b"true.", True)])
def test_what_comes_behind_a_value_is_none_of_it(text: bytes, value: object) -> None:
    assert read_json(text) == value


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
    [
        (0.0, "0"),
        (743.0, "743"),
        (999_999.0, "999999"),
        (1_234_567.0, "1.234567e+06"),
        (0.25, "0.25"),
        (1e-5, "1e-05"),
        (0.1 + 0.2, "0.30000000000000004"),
    ],
)
def test_a_sample_has_an_exponent_from_a_million_on(value: float, text: str) -> None:
    assert sample(value) == text


@pytest.mark.parametrize(
    ("address", "found"),
    [
        ("a:80", ("a", 80)), (":0", ("", 0)), ("a:", ("a", 0)), ("a:+80", ("a", 80)), ("a:65535", ("a", 65535)),
        ("a:HTTP", ("a", 80)), ("[::1]:80", ("::1", 80)), ("[]:80", ("", 80)),
        ("a:65536", "address 65536: invalid port"), ("a:-1", "address -1: invalid port"),
        ("a:nope", "lookup tcp/nope: unknown port"), ("a", "address a: missing port in address"),
        ("a:b:80", "address a:b:80: too many colons in address"),
        ("[::1:80", "address [::1:80: missing ']' in address"),
        ("[::1]80", "address [::1]80: missing port in address"),
        ("[::1]x:80", "address [::1]x:80: missing port in address"),
        ("[::1]:8:80", "address [::1]:8:80: too many colons in address"),
        ("[[::1]:80", "address [[::1]:80: unexpected '[' in address"),
        ("a]:80", "address a]:80: unexpected ']' in address"),
        ("[::1]:8]", "address [::1]:8]: unexpected ']' in address"),
    ],
)  # fmt: skip
def test_an_address_is_split_or_refused_as_go_does(address: str, found: tuple[str, int] | str) -> None:
    if isinstance(found, str):
        with pytest.raises(ValueError, match=f"^{re.escape(found)}$"):
            split_address(address)
    else:
        assert split_address(address) == found
