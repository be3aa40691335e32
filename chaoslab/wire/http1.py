"""HTTP/1.1 over a blocking connection: heads as fields, bodies in parts, nothing kept beyond what one reader holds."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from chaoslab.base.phrases import phrase

HEAD_MAX = 64 * 1024
"""The largest head, in bytes."""
PART_MAX = 64 * 1024
"""The largest part of a body that is read at once, in bytes."""
CHUNKED, UNTIL_CLOSED = -1, -2
"""Framings of a body whose length is not stated."""
BODILESS = (204, 304)
"""Statuses without a body, which need no closed connection to mark their end."""
HOP_BY_HOP = frozenset({
    "connection", "keep-alive", "proxy-connection", "proxy-authenticate", "proxy-authorization", "te", "trailer",
    "transfer-encoding", "upgrade",
})  # fmt: skip
"""Fields that concern one connection only (RFC 9110, section 7.6.1)."""

LENGTH_DIGITS = 18
"""The most digits of a stated length."""
_SIZE = re.compile(rb"[0-9A-Fa-f]{1,15}")
_BARE = re.compile(rb"\r(?!\n)|(?<!\r)\n|\0")

Fields = list[tuple[str, str]]


class Malformed(ValueError):
    """The peer does not speak HTTP/1.1, or it broke off."""


class Head(NamedTuple):
    """A request's or a reply's head. `words`: the three words of its first line."""

    words: tuple[str, str, str]
    fields: Fields

    def field(self, name: str) -> str:
        """The value of the field of this name in lower case; empty if there is none."""
        return next((value for key, value in self.fields if key.lower() == name), "")

    @property
    def closes(self) -> bool:
        """True if the connection ends with this message."""
        said = self.field("connection").lower()
        version = self.words[2] if self.words[2].startswith("HTTP/") else self.words[0]
        return "close" in said or (version == "HTTP/1.0" and "keep-alive" not in said)


class Reader:
    """Reads one side of a connection. `recv`: as `socket.recv`."""

    def __init__(self, recv: Callable[[int], bytes], held: bytes = b"") -> None:
        """`held`: the bytes that were read before."""
        self._recv, self._held = recv, held

    @property
    def held(self) -> bytes:
        """The bytes that were read and are no part of what was asked for."""
        return self._held

    def head(self) -> Head | None:
        """The next head; None if the connection ends before it.

        Raises:
            Malformed: it is cut, too large, or no HTTP.
        """
        while (end := self._held.find(b"\r\n\r\n")) < 0:
            if len(self._held) > HEAD_MAX:
                raise Malformed(f"a head of more than {HEAD_MAX} bytes")
            data = self._recv(PART_MAX)
            if not data:
                if self._held.strip():
                    raise Malformed("it broke off in a head")
                return None
            self._held = (self._held + data).lstrip(b"\r\n") if not self._held else self._held + data
        text, self._held = self._held[:end], self._held[end + 4 :]
        return head_of(text)

    def body(self, framing: int) -> Iterator[bytes]:
        """The body in parts, without the marks of chunks.

        Raises:
            Malformed: it is cut, or its chunks are wrong.
        """
        if framing == CHUNKED:
            yield from self._chunks()
        elif framing == UNTIL_CLOSED:
            while data := self._some(PART_MAX):
                yield data
        else:
            yield from self._exactly(framing)

    def _exactly(self, size: int) -> Iterator[bytes]:
        while size:
            data = self._some(min(size, PART_MAX))
            if not data:
                raise Malformed("it broke off in a body")
            size -= len(data)
            yield data

    def _chunks(self) -> Iterator[bytes]:
        while size := self._size():
            yield from self._exactly(size)
            self._line()
        while self._line():
            pass

    def _size(self) -> int:
        line = self._line().partition(b";")[0].strip()
        if not _SIZE.fullmatch(line):  # int() takes -5 and 1_0 too
            raise Malformed(f"a chunk of size {line[:20]!r}")
        return int(line, 16)

    def _line(self) -> bytes:
        while (end := self._held.find(b"\r\n")) < 0:
            data = self._recv(PART_MAX)
            if not data or len(self._held) > HEAD_MAX:
                raise Malformed("it broke off in a body")
            self._held += data
        line, self._held = self._held[:end], self._held[end + 2 :]
        return line

    def _some(self, most: int) -> bytes:
        if not self._held:
            return self._recv(most)
        data, self._held = self._held[:most], self._held[most:]
        return data


def head_of(data: bytes) -> Head:
    """The head in these bytes, which end before its empty line.

    Raises:
        Malformed: it is no HTTP.
    """
    first, *lines = data.decode("latin-1").split("\r\n")
    if _BARE.search(data):  # another reader may take it for the end of a line
        raise Malformed("a head with a bare CR or LF, or a NUL")
    words = first.split(" ", 2)
    if len(words) < 2:
        raise Malformed(f"the line {first[:60]!r}")
    return Head((words[0], words[1], words[2] if len(words) > 2 else ""), [_field(line) for line in lines])


def _field(line: str) -> tuple[str, str]:
    name, colon, value = line.partition(":")
    if not colon or name != name.strip() or not name:
        raise Malformed(f"the field {line[:60]!r}")
    return name, value.strip()


def framing_of_request(head: Head) -> int:
    """The framing of a request's body.

    Raises:
        Malformed: it is stated wrongly.
    """
    coding, length = head.field("transfer-encoding").lower(), head.field("content-length")
    if not coding:
        return _length(length or "0")
    if length:
        raise Malformed("a request with both Transfer-Encoding and Content-Length")
    if coding != "chunked":
        raise Malformed(f"the Transfer-Encoding {coding[:60]!r}")
    return CHUNKED


def framing_of_reply(head: Head, method: str) -> int:
    """The framing of the body of a reply to a request of that method.

    Raises:
        Malformed: it is stated wrongly.
    """
    status = int(head.words[1])
    if method == "HEAD" or status in BODILESS or status < 200:
        return 0
    if "chunked" in head.field("transfer-encoding").lower():
        return CHUNKED
    length = head.field("content-length")
    return _length(length) if length else UNTIL_CLOSED


def _length(text: str) -> int:
    if not text.isdecimal() or len(text) > LENGTH_DIGITS:
        raise Malformed(f"the length {text[:20]!r}")
    return int(text)


def chunk(part: bytes) -> bytes:
    """A part of a body whose length is not stated."""
    return b"%x\r\n%s\r\n" % (len(part), part)


def spelt(first: str, fields: Fields) -> bytes:
    """A head as bytes."""
    return "".join([first, "\r\n", *(f"{name}: {value}\r\n" for name, value in fields), "\r\n"]).encode("latin-1")


def status_line(status: int) -> str:
    return f"HTTP/1.1 {status} {phrase(status, '')}"
