"""Whole messages of moderate size, as the gateway's loop takes them out of what it has read."""

from __future__ import annotations

from functools import lru_cache

from chaoslab.core.stream import EVENT_STREAM
from chaoslab.seams.gateway.connection import Request, refusal, secrets_of, split, status_line
from chaoslab.wire.http1 import BODILESS, HOP_BY_HOP, PART_MAX, Fields, Head, Malformed, head_of, spelt

SIZE_MAX = 2 * PART_MAX
"""The largest request and the largest answer that the loop keeps, with their heads, in bytes."""
HEADS_MAX, HEAD_KEPT_MAX = 256, 4096
"""The number of heads of each kind that are kept, and the largest of them in bytes."""
_SINGLE = ("connection", "content-length", "content-type", "expect", "host", "origin", "transfer-encoding")


class NotForLoop(Exception):
    """A message that is not read whole, such as a stream, or is none."""


class RequestHead:
    """A request's head. `said`: its fields by their names in lower case; `size`: of the body that follows, in bytes;
    `request`: it without its body; `secrets`: those in it. `sent`: the head as the route's service gets it, once that
    is known."""

    __slots__ = ("head", "name", "request", "said", "secrets", "sent", "size")

    def __init__(self, data: bytes, only: str) -> None:
        self.head, self.said = _head(data)
        method, target, version = self.head.words
        said, length = self.said, self.said.get("content-length", "0")
        if (
            version != "HTTP/1.1"
            or "transfer-encoding" in said
            or "expect" in said
            or "upgrade" in said
            or ("connection" in said and "close" in said["connection"].lower())
            or not length.isdecimal()
            or len(data) + int(length) > SIZE_MAX
            or refusal(said.get("origin", ""), said.get("host", "").lower()) is not None
        ):
            raise NotForLoop
        self.name, path = split(target, only)
        self.size, self.sent = int(length), b""
        fields = [(key.encode("latin-1"), value.encode("latin-1")) for key, value in self.head.fields]
        self.request = Request(method, path, fields, b"")
        self.secrets = secrets_of(self.head, path)


class AnswerHead:
    """An answer's head. `fields`: without those of one connection; `data`: the head as a client gets it; `size`: of the
    body that follows, in bytes."""

    __slots__ = ("closes", "data", "fields", "said", "size", "status")

    def __init__(self, data: bytes) -> None:
        head, said = _head(data)
        version, status, _ = head.words
        length = said.get("content-length", "")
        if (
            version != "HTTP/1.1"
            or len(status) != 3
            or not status.isdecimal()
            or (code := int(status)) < 200
            or code in BODILESS
            or not length.isdecimal()
            or len(data) + int(length) > SIZE_MAX
            or "transfer-encoding" in said
            or said.get("content-type", "").startswith(EVENT_STREAM)
        ):
            raise NotForLoop
        self.status, self.said, self.size = code, said, int(length)
        self.fields: Fields = [field for field in head.fields if field[0].lower() not in HOP_BY_HOP]
        self.closes = "connection" in said and "close" in said["connection"].lower()
        self.data = spelt(status_line(code), self.fields)


class Heads:
    """The heads that were read last, in memory alone. Who asks again says mostly the same bytes."""

    def __init__(self) -> None:
        self._request, self._answer = lru_cache(HEADS_MAX)(RequestHead), lru_cache(HEADS_MAX)(AnswerHead)

    def request_in(self, data: bytes, only: str) -> tuple[RequestHead, Request, bytes] | None:
        """The request with which the bytes begin: its head, all of it, and the bytes after it. None as long as it is
        not whole. `only`: as in `split`.

        Raises:
            NotForLoop: it is another message.
        """
        begin = _begin(data)
        if not begin:
            return None
        known = self._request(data[:begin], only) if begin <= HEAD_KEPT_MAX else RequestHead(data[:begin], only)
        if not known.size:
            return known, known.request, data[begin:]
        end = begin + known.size
        if len(data) < end:
            return None
        head = known.request
        return known, Request(head.method, head.target, head.headers, data[begin:end]), data[end:]

    def answer_in(self, data: bytes, method: str) -> tuple[AnswerHead, bytes] | None:
        """The answer that the bytes are, to a request of this method: its head and its body. None as long as it is not
        whole.

        Raises:
            NotForLoop: it is another message.
        """
        begin = _begin(data)
        if not begin:
            return None
        known = self._answer(data[:begin]) if begin <= HEAD_KEPT_MAX else AnswerHead(data[:begin])
        missing = begin + known.size - len(data)
        if method == "HEAD" or missing < 0:
            raise NotForLoop
        return None if missing else (known, data[begin:])


def _begin(data: bytes) -> int:
    """The place at which the body begins; 0 as long as the head is not whole."""
    end = data.find(b"\r\n\r\n")
    if end >= 0:
        return end + 4
    if len(data) > PART_MAX or data.startswith((b"\r", b"\n")):
        raise NotForLoop
    return 0


def _head(data: bytes) -> tuple[Head, dict[str, str]]:
    """A head, and its fields by their names in lower case."""
    try:
        head = head_of(data[:-4])
    except Malformed:
        raise NotForLoop from None
    said = {name.lower(): value for name, value in head.fields}
    if len(said) != len(head.fields):
        names = [name.lower() for name, _ in head.fields]
        if any(names.count(name) > 1 for name in _SINGLE):
            raise NotForLoop
    return head, said
