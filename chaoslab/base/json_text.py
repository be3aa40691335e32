"""JSON texts, written and read as `json` does it, in less time."""

import json
from collections.abc import Callable
from typing import Any

import msgspec

BRACKETS_MAX = 400
"""The most brackets of a text that msgspec reads: it follows a few more levels than json before it gives up."""
_decode = msgspec.json.Decoder().decode
_BEGINS = b'{["-0123456789tfnNI \t\r\n\0\xef\xfe\xff'
"""The first bytes of JSON texts, in any encoding that json reads."""


def decode_json(text: str | bytes) -> Any:
    """The value of a JSON text, as `json.loads` gives it.

    msgspec takes a part of what json takes, and gives the same values for it. It refuses NaN, lone surrogates, numbers
    beyond a float's range and other encodings than UTF-8: json has the last word on these. Raises ValueError: it is no
    JSON. RecursionError: it is nested too deeply.
    """
    if isinstance(text, bytes) and text and text[0] not in _BEGINS:
        raise json.JSONDecodeError("Expecting value", "", 0)  # of a large body in no time
    if len(text) <= 2 * BRACKETS_MAX or _count_brackets(text) <= BRACKETS_MAX:
        try:
            return _decode(text)
        except ValueError:
            pass
    return json.loads(text)


def encode_text(text: str) -> bytes:
    """A JSON text as bytes. One half of a surrogate pair, which UTF-8 cannot hold, becomes its escape."""
    return text.encode("utf-8", "backslashreplace")


quoted = json.encoder.encode_basestring
"""A text as JSON."""


def _count_brackets(text: str | bytes) -> int:
    return text.count("[") + text.count("{") if isinstance(text, str) else text.count(b"[") + text.count(b"{")


def make_json_writer(*, separators: tuple[str, str] = (", ", ": "), sort_keys: bool = False) -> Callable[[Any], str]:
    """A function that writes a value as `json.dumps(value, ensure_ascii=False)` does. A value that holds itself is a
    RecursionError."""
    # check_circular costs a lookup for each list and object; without it a cycle is a RecursionError, too.
    return json.JSONEncoder(ensure_ascii=False, check_circular=False, separators=separators, sort_keys=sort_keys).encode
