"""Writes JSON and numbers as Go does, and the errors of requests to the API."""

import contextlib
import re
import struct
from collections.abc import Callable, Mapping
from decimal import Decimal
from json.encoder import encode_basestring
from typing import Any

# Go escapes characters that a browser could take for HTML or for a line's end.
MARKUP = str.maketrans({"&": "\\u0026", "<": "\\u003c", ">": "\\u003e", "\u2028": "\\u2028", "\u2029": "\\u2029"})
MARKED = re.compile("[&<>\u2028\u2029]")


def dump(value: Any) -> str:
    """The value as JSON without blanks."""
    text = WRITERS[type(value)](value)
    return text.translate(MARKUP) if MARKED.search(text) else text


def _object(value: dict[str, Any]) -> str:
    return (
        "{" + ",".join([f"{encode_basestring(key)}:{WRITERS[type(item)](item)}" for key, item in value.items()]) + "}"
    )


def _array(value: list[Any]) -> str:
    return "[" + ",".join([WRITERS[type(item)](item) for item in value]) + "]"


def float32(value: float) -> float:
    """The nearest float of 32 bits. Raises OverflowError: it is too large."""
    (near,) = struct.unpack("<f", struct.pack("<f", value))
    return float(near)


def _float32(value: float) -> str:
    """The text of a float of 32 bits. Very small and very large ones have an exponent."""
    if value == 0:
        return str(value).removesuffix(".0")
    mantissa, exponent = _shortest(value, float32)
    if float32(1e-6) <= abs(value) < 1e21:
        return _plain(mantissa, int(exponent))
    return f"{mantissa}e{exponent[0]}{exponent[1:].lstrip('0')}"


def sample(value: float) -> str:
    """A number in Prometheus's text format: from a million on with an exponent."""
    mantissa, exponent = _shortest(value, float)
    return _plain(mantissa, int(exponent)) if -4 <= int(exponent) < 6 else f"{mantissa}e{exponent}"


def _shortest(value: float, read: Callable[[float], float]) -> tuple[str, str]:
    """Mantissa and exponent, with the fewest digits from which `read` gets the number back."""
    for digits in range(17):
        text = f"{value:.{digits}e}"
        with contextlib.suppress(OverflowError):  # the largest, rounded up
            if read(float(text)) == value:
                break
    mantissa, _, exponent = text.partition("e")
    return mantissa, exponent


def _plain(mantissa: str, exponent: int) -> str:
    decimals = max(len(mantissa.partition(".")[2]) - exponent, 0)
    return f"{Decimal(mantissa).scaleb(exponent):.{decimals}f}"


WRITERS: Mapping[type, Callable[[Any], str]] = {
    str: encode_basestring, dict: _object, list: _array, bool: lambda value: "true" if value else "false",
    type(None): lambda _: "null", int: str, float: _float32,
}  # fmt: skip


class ApiError(Exception):
    """A refusal: an HTTP status and its message."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class BadTarget(Exception):
    """A request's target is malformed, so the request is invalid."""
