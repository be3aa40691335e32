"""JSON and numbers as Go spells them."""

from __future__ import annotations

import struct
from json.encoder import encode_basestring
from typing import Any

MARKUP = str.maketrans(
    {"&": "\\u0026", "<": "\\u003c", ">": "\\u003e", "\u2028": "\\u2028", "\u2029": "\\u2029"}
)  # nothing that a browser could take for HTML or a line's end


def dump(value: Any) -> str:
    """A JSON text without blanks."""
    return _dump(value).translate(MARKUP)


def _dump(value: Any) -> str:
    if isinstance(value, str):
        return encode_basestring(value)
    if isinstance(value, dict):
        return "{" + ",".join([f"{encode_basestring(key)}:{_dump(item)}" for key, item in value.items()]) + "}"
    if isinstance(value, list):
        return "[" + ",".join([_dump(item) for item in value]) + "]"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value) if isinstance(value, int) else _float32(value)


def float32(value: float) -> float:
    """The nearest number that has a place in 32 bits.

    Raises:
        OverflowError: it is too large.
    """
    (near,) = struct.unpack("f", struct.pack("f", value))
    return float(near)


def _float32(value: float) -> str:
    """With as many digits as are needed to tell it from its neighbours; very small and very large ones with an exponent."""
    if value == 0:
        return str(value).removesuffix(".0")
    mantissa, _, exponent = next(
        text for digits in range(9) if float32(float(text := f"{value:.{digits}e}")) == value
    ).partition("e")
    if float32(1e-6) <= abs(value) < 1e21:
        decimals = len(mantissa.partition(".")[2]) - int(exponent)
        return f"{float(f'{mantissa}e{exponent}'):.{max(decimals, 0)}f}"
    return f"{mantissa}e{exponent[0]}{exponent[1:].lstrip('0')}"


def sample(value: float) -> str:
    """A number in the text of Prometheus."""
    mantissa, _, exponent = next(
        text for digits in range(17) if float(text := f"{value:.{digits}e}") == value
    ).partition("e")
    if -4 <= int(exponent) < 6:
        decimals = len(mantissa.partition(".")[2]) - int(exponent)
        return f"{value:.{max(decimals, 0)}f}"
    return f"{mantissa}e{exponent}"
