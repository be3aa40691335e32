"""Plain exchanges: whole requests of moderate size, and answers of known length or in chunks.

h11 reads and spells each head once. Who asks again says mostly the same, so the heads of the last exchanges are kept.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import h11

from chaoslab.wire.http1 import BODILESS, Malformed

HEADS_MAX, HEAD_KEPT_MAX, BODY_MAX = 256, 4096, 128 * 1024
"""The number of heads of each kind that are kept, the largest of them and the largest body, in bytes."""
_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;.*)?\Z")
_SPECIAL = frozenset({b"transfer-encoding", b"expect", b"upgrade"})


class RequestHead(NamedTuple):
    """The head of a request. `headers`: names in lower case, and values. `size`: of a plain one's body in bytes."""

    method: bytes
    target: bytes
    headers: Sequence[tuple[bytes, bytes]]
    size: int = 0

    @classmethod
    def of(cls, request: h11.Request) -> "RequestHead":
        return cls(request.method, request.target, list(request.headers))


def asked_in(data: bytes) -> RequestHead | None:
    """The head with which the bytes begin, if all of it is there and it is that of a plain request."""
    end = data.find(b"\r\n\r\n") + 4
    return _asked(data[:end]) if 4 <= end <= HEAD_KEPT_MAX else None


def may_become_plain(data: bytes) -> bool:
    """True as long as the bytes may be the beginning of a plain request's head."""
    return len(data) <= HEAD_KEPT_MAX and b"\r\n\r\n" not in data and not data.startswith((b"\r", b"\n"))


@lru_cache(HEADS_MAX)
def _asked(data: bytes) -> RequestHead | None:
    http = h11.Connection(h11.SERVER)
    http.receive_data(data)
    try:
        request = http.next_event()
    except h11.RemoteProtocolError:
        return None
    if not isinstance(request, h11.Request) or request.http_version != b"1.1" or request.method == b"CONNECT":
        return None
    said = dict(request.headers)
    size = int(said.get(b"content-length", b"0"))
    if not _SPECIAL.isdisjoint(said) or said.get(b"connection", b"keep-alive").lower() != b"keep-alive":
        return None
    return RequestHead.of(request)._replace(size=size) if size <= BODY_MAX else None


def answer_head(status: int, fields: Sequence[tuple[str, str]], reason: str) -> bytes | None:
    """The head of a plain answer as bytes. `fields`: names in lower case; without a length among them, the body goes in
    chunks and the connection ends with it. None if the answer is none, has no body by its status, or says something
    of its connection."""
    if status in BODILESS or status < 200 or any(name in ("connection", "transfer-encoding") for name, _ in fields):
        return None
    return _answer_head(status, tuple(fields), reason)


@lru_cache(HEADS_MAX)
def _answer_head(status: int, fields: tuple[tuple[str, str], ...], reason: str) -> bytes | None:
    http = h11.Connection(h11.SERVER)
    http.receive_data(b"GET / HTTP/1.1\r\nHost: any\r\n\r\n")
    http.next_event()
    http.next_event()
    measured = any(name == "content-length" for name, _ in fields)
    headers = [*fields] if measured else [*fields, ("connection", "close")]
    try:
        return http.send(h11.Response(status_code=status, headers=headers, reason=reason))
    except h11.LocalProtocolError:
        return None


class Chunks:
    """A body in chunks, as its reader takes it. `rest`: the bytes after its end, once that has come."""

    def __init__(self) -> None:
        self._held, self._left, self._last = b"", 0, False
        self.rest: bytes | None = None

    def take(self, data: bytes) -> list[bytes]:
        """The parts of the body in these bytes. Raises Malformed: they are not in chunks."""
        self._held += data
        found = []
        while self._held and self.rest is None:
            if self._left > 2:  # a chunk's bytes, then the end of its line
                part = self._held[: self._left - 2]
                self._held, self._left = self._held[len(part) :], self._left - len(part)
                found.append(part)
            elif self._left:
                mark = self._held[: self._left]
                if mark != b"\r\n"[-self._left :][: len(mark)]:
                    raise Malformed("a chunk without its end")
                self._held, self._left = self._held[len(mark) :], self._left - len(mark)
            elif not self._line():
                break
        return found

    def _line(self) -> bool:
        """Takes the line before a chunk, or one after the last; False if it is not whole."""
        line, end, rest = self._held.partition(b"\r\n")
        if not end:
            if len(line) > HEAD_KEPT_MAX:
                raise Malformed("the line of a chunk has no end")
            return False
        self._held = rest
        if not self._last:
            size = _SIZE.match(line)
            if size is None:
                raise Malformed(f"a chunk of size {line[:20]!r}")
            self._left = int(size[1], 16) + 2
            if self._left == 2:
                self._left, self._last = 0, True
        elif not line:
            self.rest, self._held = rest, b""
        return True
