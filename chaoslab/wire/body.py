"""Reads a reply's body unpacked: whole, up to a stated size, or part by part. Bytes beyond that size are neither kept
nor unpacked. Of a body that is read in parts only the part in hand is kept."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterable

from chaoslab.core.exchange import Failure

BODY_MAX = 4 * 1024 * 1024
"""The most bytes of a body, on the wire and unpacked: more than any model could read. A larger one is a failure."""

ACCEPTED = "gzip"
"""The coding that a server may pack with: the one that can be unpacked step by step here."""
GZIPS = ("gzip", "x-gzip")


async def whole(stream: AsyncIterable[bytes], codings: str) -> bytes:
    """The whole body of a stream, unpacked. `codings`: its Content-Encoding. Raises Failure: as `unpacked`."""
    packed = bytearray()
    async for chunk in stream:
        packed += chunk
        if len(packed) > BODY_MAX:
            raise Failure("too_large")
    return unpacked(bytes(packed), codings)


def unpacked(packed: bytes, codings: str) -> bytes:
    """The body unpacked. `codings`: its Content-Encoding. Raises Failure: too_large, or garbled: not packed as its
    header says."""
    if len(packed) > BODY_MAX:
        raise Failure("too_large")
    if not packed or not codings:
        return packed
    unpacker, body = Unpacker(codings), bytearray()
    unpacker.feed(packed)
    while part := unpacker.next():
        body += part
        if len(body) > BODY_MAX:
            raise Failure("too_large")
    unpacker.end()
    return bytes(body)


PART_MAX = 64 * 1024
"""The most bytes of one part of a body that is unpacked part by part."""


class Unpacker:
    """Unpacks a body part by part. `codings`: its Content-Encoding. Raises Failure: garbled, if it is packed in a way
    that cannot be unpacked."""

    def __init__(self, codings: str) -> None:
        packings = [coding for part in codings.lower().split(",") if (coding := part.strip()) not in ("", "identity")]
        if len(packings) > 1 or any(coding not in GZIPS for coding in packings):
            raise Failure("garbled")
        self._zlib = zlib.decompressobj(zlib.MAX_WBITS | 16) if packings else None
        self._packed = b""

    def feed(self, part: bytes) -> None:
        """Takes in the next part. All that `next` gives must have been taken before."""
        self._packed = part

    def next(self) -> bytes:
        """The next bytes unpacked, at most `PART_MAX` of a packed body; none if the part is through. Raises Failure:
        garbled, if they are not packed as the header says."""
        packed, self._packed = self._packed, b""
        if self._zlib is None or not packed:
            return packed
        try:
            part = self._zlib.decompress(packed, PART_MAX)
        except zlib.error:
            raise Failure("garbled") from None
        self._packed = self._zlib.unconsumed_tail
        return part

    def end(self) -> None:
        """Raises Failure if the body ended too early."""
        if self._zlib is not None and not self._zlib.eof:
            raise Failure("garbled")
