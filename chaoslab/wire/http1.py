"""HTTP/1.1 as bytes: its bounds, how heads and chunks are spelled, and bodies unpacked: whole, up to a stated size, or
part by part. Bytes beyond that size are neither kept nor unpacked."""

import zlib
from collections.abc import AsyncIterable

from chaoslab.core.exchange import Failure

HEAD_MAX = 64 * 1024
"""The largest head, in bytes."""
PART_MAX = 64 * 1024
"""The largest part of a body that is read, or unpacked, at once, in bytes."""
# The size in bytes from which on, twice, no more of a body is read ahead: asyncio reads so much at once.
READ_MAX = 256 * 1024
CHUNKED = -1
"""The framing of a body whose length is not stated."""
# Other statuses without a length end with their connection, which could not be kept then.
BODILESS = (204, 304)
"""Statuses without a body, which need no closed connection to mark their end."""
HOP_BY_HOP = frozenset({
    "connection", "keep-alive", "proxy-connection", "proxy-authenticate", "proxy-authorization", "te", "trailer",
    "transfer-encoding", "upgrade",
})  # fmt: skip
"""Fields that concern one connection only (RFC 9110, section 7.6.1)."""

Fields = list[tuple[str, str]]


def render_chunk(content: bytes) -> bytes:
    """A part of a body whose length is not stated."""
    # Hexadecimal, without a prefix (RFC 9112, section 7.1).
    return b"%x\r\n%s\r\n" % (len(content), content)


def render_head(first: str, fields: Fields) -> bytes:
    """A head as bytes."""
    # Latin-1 takes each byte as it is, so a head goes on with the bytes that it came with.
    return "".join([first, "\r\n", *(f"{name}: {value}\r\n" for name, value in fields), "\r\n"]).encode("latin-1")


BODY_MAX = 4 * 1024 * 1024
"""The most bytes of a body, on the wire and unpacked: more than any model could read. A larger one is a failure."""

# The coding that a server may pack with: the one that can be unpacked step by step here.
ACCEPTED = "gzip"
GZIPS = ("gzip", "x-gzip")


async def read_body(stream: AsyncIterable[bytes], codings: str) -> bytes:
    """The whole body of a stream, unpacked. `codings`: its Content-Encoding. Raises Failure: as `unpack_body`."""
    packed = bytearray()
    async for chunk in stream:
        packed += chunk
        # While it grows: a body without an end would fill the memory first.
        if len(packed) > BODY_MAX:
            raise Failure("too_large")
    return unpack_body(bytes(packed), codings)


def unpack_body(packed: bytes, codings: str) -> bytes:
    """The body unpacked. `codings`: its Content-Encoding. Raises Failure: too_large, or garbled: not packed as its
    header says."""
    if len(packed) > BODY_MAX:
        raise Failure("too_large")
    if not packed or not codings:
        return packed
    unpacker, body = BodyDecompressor(codings), bytearray()
    unpacker.feed(packed)
    while piece := unpacker.decompress_next_part():
        body += piece
        # The unpacked bytes are bounded too, since a megabyte of zeros is packed into a thousandth of it.
        if len(body) > BODY_MAX:
            raise Failure("too_large")
    unpacker.raise_if_truncated()
    return bytes(body)


class BodyDecompressor:
    """Unpacks a body part by part. `codings`: its Content-Encoding. Raises Failure: garbled, if it is packed in a way
    that cannot be unpacked."""

    def __init__(self, codings: str) -> None:
        packings = [coding for name in codings.lower().split(",") if (coding := name.strip()) not in ("", "identity")]
        # Packed twice is refused, so that one state is enough: the same in a whole body and in parts.
        if len(packings) > 1 or any(coding not in GZIPS for coding in packings):
            raise Failure("garbled")
        # 16 asks zlib for gzip's header and checksum; MAX_WBITS is the largest window that a packer may have used.
        self._zlib = zlib.decompressobj(zlib.MAX_WBITS | 16) if packings else None
        self._packed = b""

    def feed(self, piece: bytes) -> None:
        """Takes in the next part. All that `decompress_next_part` gives must have been taken before."""
        self._packed = piece

    def decompress_next_part(self) -> bytes:
        """The next bytes unpacked, at most `PART_MAX` of a packed body; none if the part is through. Raises Failure:
        garbled, if they are not packed as the header says."""
        packed, self._packed = self._packed, b""
        if self._zlib is None or not packed:
            return packed
        try:
            # Bounded, since a small part may unpack to any size; what is left of it is in `unconsumed_tail`.
            piece = self._zlib.decompress(packed, PART_MAX)
        except zlib.error:
            raise Failure("garbled") from None
        self._packed = self._zlib.unconsumed_tail
        return piece

    def raise_if_truncated(self) -> None:
        """Raises Failure if the body ended too early."""
        # Without gzip's own end a body that was cut short would pass for a whole one.
        if self._zlib is not None and not self._zlib.eof:
            raise Failure("garbled")
