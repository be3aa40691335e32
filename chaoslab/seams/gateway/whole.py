"""Whole messages of moderate size, as the gateway's loop takes them out of what it has read."""

from __future__ import annotations

from chaoslab.core.stream import EVENT_STREAM
from chaoslab.seams.gateway.connection import Request, refusal, split, status_line
from chaoslab.wire.http1 import BODILESS, HOP_BY_HOP, PART_MAX, Fields, Head, Malformed, head_of, spelt

SIZE_MAX = 2 * PART_MAX
"""The largest request and the largest answer that the loop keeps, with their heads, in bytes."""

_SINGLE = ("connection", "content-length", "content-type", "expect", "host", "origin", "transfer-encoding")


class NotForLoop(Exception):
    """A message that is not read whole, such as a stream, or is none."""


class WholeRequest:
    """A request. `said`: its fields by their names in lower case; `rest`: the bytes after it."""

    __slots__ = ("head", "name", "request", "rest", "said")

    def __init__(self, name: str, request: Request, head: Head, said: dict[str, str], rest: bytes) -> None:
        self.name, self.request, self.head, self.said, self.rest = name, request, head, said, rest


class WholeAnswer:
    """An answer, and the bytes in which a client gets it. `fields`: without those of one connection."""

    __slots__ = ("body", "closes", "data", "fields", "said", "status")

    def __init__(self, status: int, fields: Fields, said: dict[str, str], body: bytes, *, closes: bool) -> None:
        self.status, self.fields, self.said, self.body, self.closes = status, fields, said, body, closes
        self.data = spelt(status_line(status), fields) + body


def request_in(data: bytes, only: str) -> WholeRequest | None:
    """The request with which the bytes begin; None as long as it is not whole. `only`: as in `split`.

    Raises:
        NotForLoop: it is another message.
    """
    found = _head(data)
    if found is None:
        return None
    head, said, end = found
    method, target, version = head.words
    length = said.get("content-length", "0")
    if (
        version != "HTTP/1.1"
        or "transfer-encoding" in said
        or "expect" in said
        or "upgrade" in said
        or ("connection" in said and "close" in said["connection"].lower())
        or not length.isdecimal()
        or (size := end + int(length)) > SIZE_MAX
        or refusal(said.get("origin", ""), said.get("host", "").lower()) is not None
    ):
        raise NotForLoop
    if len(data) < size:
        return None
    name, path = split(target, only)
    fields = [(key.encode("latin-1"), value.encode("latin-1")) for key, value in head.fields]
    return WholeRequest(name, Request(method, path, fields, data[end:size]), head, said, data[size:])


def answer_in(data: bytes, method: str) -> WholeAnswer | None:
    """The answer that the bytes are, to a request of this method; None as long as it is not whole.

    Raises:
        NotForLoop: it is another message.
    """
    found = _head(data)
    if found is None:
        return None
    head, said, end = found
    version, status, _ = head.words
    length = said.get("content-length", "")
    if (
        version != "HTTP/1.1"
        or len(status) != 3
        or not status.isdecimal()
        or (code := int(status)) < 200
        or code in BODILESS
        or method == "HEAD"
        or not length.isdecimal()
        or not len(data) <= (size := end + int(length)) <= SIZE_MAX
        or "transfer-encoding" in said
        or said.get("content-type", "").startswith(EVENT_STREAM)
    ):
        raise NotForLoop
    if len(data) < size:
        return None
    fields = head.fields
    if not HOP_BY_HOP.isdisjoint(said):
        fields = [field for field in fields if field[0].lower() not in HOP_BY_HOP]
    closes = "connection" in said and "close" in said["connection"].lower()
    return WholeAnswer(code, fields, said, data[end:], closes=closes)


def _head(data: bytes) -> tuple[Head, dict[str, str], int] | None:
    """The head with which the bytes begin, its fields by their names in lower case, and its size."""
    end = data.find(b"\r\n\r\n")
    if end < 0:
        if len(data) > PART_MAX or data.startswith((b"\r", b"\n")):
            raise NotForLoop
        return None
    try:
        head = head_of(data[:end])
    except Malformed:
        raise NotForLoop from None
    said = {name.lower(): value for name, value in head.fields}
    if len(said) != len(head.fields):
        names = [name.lower() for name, _ in head.fields]
        if any(names.count(name) > 1 for name in _SINGLE):
            raise NotForLoop
    return head, said, end + 4
