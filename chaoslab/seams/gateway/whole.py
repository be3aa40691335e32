"""Whole messages of moderate size, as the gateway's loop takes them out of what it has read.

A client mostly sends the head that it sent last, and a service too. Who reads from a connection keeps the last head
with it, and it is not parsed again when the same bytes come.
"""

from __future__ import annotations

from functools import cached_property

from chaoslab.core.stream import EVENT_STREAM
from chaoslab.seams.gateway.requests import refusal, split
from chaoslab.seams.gateway.routes import Route
from chaoslab.seams.gateway.upstream import head_for
from chaoslab.seams.services.messages import HttpRequest
from chaoslab.seams.services.wanted import Wanted
from chaoslab.wire.http1 import (
    BODILESS,
    HOP_BY_HOP,
    LENGTH_DIGITS,
    PART_MAX,
    Fields,
    Head,
    Malformed,
    head_of,
    spelt,
    status_line,
)  # fmt: skip

SIZE_MAX = 2 * PART_MAX
"""The largest request and the largest answer that the loop keeps, with their heads, in bytes."""

_SINGLE = ("connection", "content-length", "content-type", "expect", "host", "origin", "transfer-encoding")


class NotForLoop(Exception):
    """A message that is not read whole, such as a stream, or is none."""


class RequestHead:
    """The head of a request that the loop takes, with what follows from it alone. `text`: its bytes; `size`: those of
    the whole request; `name`: the route."""

    def __init__(self, text: bytes, only: str) -> None:
        """`only`: as in `split`.

        Raises:
            NotForLoop: it is the head of another message.
        """
        head, said = _parsed(text)
        method, target, version = head.words
        length = said.get("content-length", "0")
        if (
            version != "HTTP/1.1"
            or "transfer-encoding" in said
            or "expect" in said
            or "upgrade" in said
            or ("connection" in said and "close" in said["connection"].lower())
            or not length.isdecimal()
            or len(length) > LENGTH_DIGITS
            or len(text) + int(length) > SIZE_MAX
            or refusal(said.get("origin", ""), said.get("host", "").lower()) is not None
        ):
            raise NotForLoop
        self.text, self.head, self.size = text, head, len(text) + int(length)
        self.name, path = split(target, only)
        fields = [(key.encode("latin-1"), value.encode("latin-1")) for key, value in head.fields]
        self._bodiless = HttpRequest(method, path, fields, b"")
        self.secrets = self._bodiless.secrets
        self._sent: tuple[Route, bytes] | None = None

    def request(self, body: bytes) -> tuple[HttpRequest, Wanted]:
        """The request with this body."""
        if not body:
            return self._bodiless, self._wanted
        bare = self._bodiless
        request = HttpRequest(bare.method, bare.target, bare.headers, body)
        return request, Wanted(request)

    @cached_property
    def _wanted(self) -> Wanted:
        return Wanted(self._bodiless)

    def sent_to(self, route: Route) -> bytes:
        """The head as the route's service gets it."""
        if self._sent is None or self._sent[0] is not route:
            bare, length = self._bodiless, self.size - len(self.text)
            self._sent = route, head_for(route, bare.method, bare.target, self.head.fields, length)
        return self._sent[1]


class AnswerHead:
    """The head of an answer that the loop takes. `text`: its bytes; `size`: those of the whole answer; `fields`: those
    that do not concern one connection alone; `said`: all, by their names in lower case; `sent`: the head as a client
    gets it."""

    __slots__ = ("closes", "fields", "said", "sent", "size", "status", "text")

    def __init__(self, text: bytes) -> None:
        """Raises:
        NotForLoop: it is the head of another message.
        """
        head, said = _parsed(text)
        version, status, _ = head.words
        length = said.get("content-length", "")
        if (
            version != "HTTP/1.1"
            or len(status) != 3
            or not status.isdecimal()
            or (code := int(status)) < 200
            or code in BODILESS
            or not length.isdecimal()
            or len(length) > LENGTH_DIGITS
            or len(text) + int(length) > SIZE_MAX
            or "transfer-encoding" in said
            or said.get("content-type", "").startswith(EVENT_STREAM)
        ):
            raise NotForLoop
        fields = head.fields
        if not HOP_BY_HOP.isdisjoint(said):
            fields = [field for field in fields if field[0].lower() not in HOP_BY_HOP]
        self.text, self.size, self.status, self.said = text, len(text) + int(length), code, said
        self.fields: Fields = fields
        self.sent = spelt(status_line(code), fields)
        self.closes = "connection" in said and "close" in said["connection"].lower()


def request_head(data: bytes, only: str, last: RequestHead | None) -> RequestHead | None:
    """The head with which the bytes begin; None as long as it is not whole. `only`: as in `split`; `last`: the last one
    of this connection.

    Raises:
        NotForLoop: it is the head of another message.
    """
    if last is not None and data.startswith(last.text):
        return last
    return RequestHead(text, only) if (text := _head_in(data)) else None


def answer_head(data: bytes, last: AnswerHead | None) -> AnswerHead | None:
    """As `request_head`, for an answer."""
    if last is not None and data.startswith(last.text):
        return last
    return AnswerHead(text) if (text := _head_in(data)) else None


def _head_in(data: bytes) -> bytes:
    """The bytes of the head with which the data begins, its empty line included; none as long as it is not whole."""
    end = data.find(b"\r\n\r\n")
    if end < 0:
        if len(data) > PART_MAX or data.startswith((b"\r", b"\n")):
            raise NotForLoop
        return b""
    return data[: end + 4]


def _parsed(text: bytes) -> tuple[Head, dict[str, str]]:
    """A head, and its fields by their names in lower case."""
    try:
        head = head_of(text[:-4])
    except Malformed:
        raise NotForLoop from None
    said = {name.lower(): value for name, value in head.fields}
    if len(said) != len(head.fields):
        names = [name.lower() for name, _ in head.fields]
        if any(names.count(name) > 1 for name in _SINGLE):
            raise NotForLoop
    return head, said
