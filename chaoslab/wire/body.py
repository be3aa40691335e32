"""Reads a reply's body, whole and unpacked, up to a stated size. Bytes beyond it are neither kept nor unpacked."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterable

from chaoslab.core.exchange import Failure

BODY_MAX = 4 * 1024 * 1024
"""The most bytes of a body, on the wire and unpacked: more than any model could read. A larger one is a failure."""

ACCEPTED = "gzip"
"""The coding that a server may pack with: the one that can be unpacked step by step here."""


async def whole(stream: AsyncIterable[bytes], codings: str) -> bytes:
    """The whole body of a stream, unpacked. `codings`: its Content-Encoding.

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
    """The body unpacked. `codings`: its Content-Encoding.

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
