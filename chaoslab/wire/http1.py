"""HTTP/1.1 as bytes: its bounds, and how heads and chunks are spelled."""

from __future__ import annotations

HEAD_MAX = 64 * 1024
"""The largest head, in bytes."""
PART_MAX = 64 * 1024
"""The largest part of a body that is read at once, in bytes."""
READ_MAX = 256 * 1024
"""The size in bytes from which on, twice, no more of a body is read ahead: asyncio reads so much at once."""
CHUNKED = -1
"""The framing of a body whose length is not stated."""
BODILESS = (204, 304)
"""Statuses without a body, which need no closed connection to mark their end."""
HOP_BY_HOP = frozenset({
    "connection", "keep-alive", "proxy-connection", "proxy-authenticate", "proxy-authorization", "te", "trailer",
    "transfer-encoding", "upgrade",
})  # fmt: skip
"""Fields that concern one connection only (RFC 9110, section 7.6.1)."""

Fields = list[tuple[str, str]]


class Malformed(ValueError):
    """The peer does not speak HTTP/1.1, or it broke off."""


def chunk(part: bytes) -> bytes:
    """A part of a body whose length is not stated."""
    return b"%x\r\n%s\r\n" % (len(part), part)


def spelt(first: str, fields: Fields) -> bytes:
    """A head as bytes."""
    return "".join([first, "\r\n", *(f"{name}: {value}\r\n" for name, value in fields), "\r\n"]).encode("latin-1")
