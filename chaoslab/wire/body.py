"""A reply's body, whole and unpacked, up to a stated size: what a hostile server sends beyond is neither kept nor unpacked."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterable

from chaoslab.core.exchange import Failure

BODY_MAX = 4 * 1024 * 1024
"""Bytes, on the wire and unpacked. More than any model could read; a tool that says more is cut off."""

ACCEPTED = "gzip"
"""What a server may pack with: that which is unpacked here step by step, whatever else is installed."""


async def whole(stream: AsyncIterable[bytes], codings: str) -> bytes:
    """All of it, unpacked; `codings`: its Content-Encoding.

    Raises:
        Failure: as `unpacked`.
    """
    packed = bytearray()
    async for chunk in stream:
        packed += chunk
        if len(packed) > BODY_MAX:
            raise Failure("too_large")
    return unpacked(bytes(packed), codings)


def unpacked(packed: bytes, codings: str) -> bytes:
    """What is here already.

    Raises:
        Failure: too_large, or garbled: not packed as its header says.
    """
    if len(packed) > BODY_MAX:
        raise Failure("too_large")
    body = packed
    for coding in reversed(codings.lower().split(",")) if codings else ():
        body = _unpacked(body, coding.strip())
    return body


def _unpacked(packed: bytes, coding: str) -> bytes:
    if coding in ("", "identity") or not packed:
        return packed
    if coding not in ("gzip", "x-gzip"):
        raise Failure("garbled")
    unpacker = zlib.decompressobj(zlib.MAX_WBITS | 16)
    try:
        body = unpacker.decompress(packed, BODY_MAX + 1)
    except zlib.error:
        raise Failure("garbled") from None
    if len(body) > BODY_MAX:
        raise Failure("too_large")
    if not unpacker.eof:
        raise Failure("garbled")
    return body
