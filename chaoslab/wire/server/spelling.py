"""JSON and numbers as Go spells them."""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Callable
from decimal import Decimal
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
    (near,) = struct.unpack("<f", struct.pack("<f", value))
    return float(near)


def _float32(value: float) -> str:
    """Very small and very large ones with an exponent."""
    if value == 0:
        return str(value).removesuffix(".0")
    mantissa, exponent = _shortest(value, float32)
    if float32(1e-6) <= abs(value) < 1e21:
        return _plain(mantissa, int(exponent))
    return f"{mantissa}e{exponent[0]}{exponent[1:].lstrip('0')}"


def sample(value: float) -> str:
    """A number in the text of Prometheus: from a million on with an exponent."""
    mantissa, exponent = _shortest(value, float)
    return _plain(mantissa, int(exponent)) if -4 <= int(exponent) < 6 else f"{mantissa}e{exponent}"


def _shortest(value: float, read: Callable[[float], float]) -> tuple[str, str]:
    """Mantissa and exponent, with as many digits as are needed to read the number back."""
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
