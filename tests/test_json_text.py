"""JSON is written and read as json does it, whichever of the two readers does it."""

import json
import math
from collections.abc import Callable
from typing import Any

import pytest

from chaoslab.base.dice import Dice
from chaoslab.base.json_text import BRACKETS_MAX, decode_json, make_json_writer

TEXTS = [
    b'{"a": [1, -2.5e3, true, null, "\\u00e9\\n"], "b": {}}', b'{"a": 1, "b": 2, "a": 3}', b" [1 ,\r\n\t2 ] ",
    b"-0", b"-0.0", b"1e5", b"1E+5", b"1e400", b"-1e400", b"1e-400", b"5e-324", b"1.7976931348623157e308",
    b"18446744073709551616", b"-9223372036854775809", b"1" * 40, b"9" * 4400, b"NaN", b"-Infinity",
    b'"\\ud800"', b'"\\ud83d\\ude00"', b'"\xed\xa0\x80"', b'"\xff"', b'"\x00"', b'"\\u0000"', b'"\\x"',
    '{"é": "ü"}'.encode(), '{"é": "ü"}'.encode("utf-16"), b"\xef\xbb\xbf[]", b"\xc2\xa01",
    b"", b" ", b"nul", b"01", b"1.", b".5", b"[1,]", b'{"a": 1,}', b"[] []", b"{'a': 1}",
    b"[" * 350 + b"]" * 350, b'{"a":' * 350 + b"1" + b"}" * 350, b"[" * 100_000,
]  # fmt: skip


def _told(read: Any, text: bytes) -> Any:
    try:
        return repr(read(text))
    except (ValueError, RecursionError) as error:
        return type(error)


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: repr(text[:24]))
def test_a_text_is_read_as_json_reads_it(text: bytes) -> None:
    assert _told(decode_json, text) == _told(json.loads, text)


def test_a_number_is_the_nearest_float() -> None:
    dice = Dice(1, "numbers").make_generator()
    for digits in range(1, 30):
        for _ in range(40):
            text = f"{dice.uniform(-9, 9):.{digits}f}e{dice.randrange(-300, 300)}".encode()
            assert math.copysign(1, decode_json(text)) == math.copysign(1, json.loads(text))
            assert decode_json(text) == json.loads(text)


def test_what_is_nested_deeply_is_left_to_json(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bytes] = []

    def noted(text: bytes) -> None:
        asked.append(text)

    monkeypatch.setattr(json, "loads", noted)
    few, many = (b"[" + b"[]," * count + b"0]" + b" " * 1000 for count in (BRACKETS_MAX - 1, BRACKETS_MAX))
    assert len(decode_json(few)) == BRACKETS_MAX
    assert asked == []
    decode_json(many)
    assert asked == [many]


VALUES: list[Any] = [
    None, True, 1, -1.5, math.nan, math.inf, "é\n\"\ud800", [], {}, (1, (2,)), {"b": 1, "a": [{"c": "ü"}]},
    {1: 2, None: 3, False: 4.5},
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=repr)
@pytest.mark.parametrize(("separators", "sort_keys"), [((", ", ": "), False), ((",", ":"), True)])
def test_a_value_is_written_as_json_writes_it(value: Any, separators: tuple[str, str], sort_keys: bool) -> None:
    def spelt(spell: Any) -> Any:
        try:
            return spell(value)
        except TypeError as error:  # keys of several types have no order
            return str(error)

    def plainly(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False, separators=separators, sort_keys=sort_keys)

    assert spelt(make_json_writer(separators=separators, sort_keys=sort_keys)) == spelt(plainly)


def test_what_no_json_can_hold_is_told_as_by_json() -> None:
    with pytest.raises(TypeError, match="Object of type object is not JSON serializable"):
        make_json_writer()({"a": object()})
    circle: list[Any] = []
    circle.append(circle)
    with pytest.raises(RecursionError):
        make_json_writer()(circle)


@pytest.mark.parametrize("text", [
    '{"a": [1, 2.5, null, "ä\\ud800"]}', " {}", "{} ", "{}x", "{", "", "[1]", "5", '"a"', "{'a': 1}", '{"a": NaN}',
    '{"a": 1}}',
])  # fmt: skip
def test_a_value_is_that_of_the_standard_library_or_its_error(text: str) -> None:
    for given in (text, text.encode(), text.encode("utf-16"), text.encode("utf-16-le"), b"\xff" + text.encode()):
        assert repr(loaded(decode_json, given)) == repr(loaded(json.loads, given))


def loaded(load: Callable[[str | bytes], Any], text: str | bytes) -> Any:
    try:
        return load(text)
    except ValueError as error:
        return type(error), str(error)
