"""HTTP as a service's seam reads and writes it: a request's arguments, and a reply as it goes over a connection.
`WebSocketSplitter` cuts a WebSocket's bytes, those that follow the answer 101 (RFC 6455)."""

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from hashlib import sha256
from typing import Any
from urllib.parse import parse_qsl, urlencode

from chaoslab.base.identity import canonical
from chaoslab.base.json_text import decode_json, encode_text
from chaoslab.base.secrets import (
    MASK,
    find_secrets_in_body,
    find_secrets_in_headers,
    find_secrets_in_query,
    is_secret_name,
)
from chaoslab.base.values import fixed
from chaoslab.core.exchange import Failure, Reply
from chaoslab.core.stream import (
    EVENT_STREAM,
    FRAMES,
    IN_LINES,
    BodySplitter,
    EventSplitter,
    FrameSplitter,
    LineSplitter,
)
from chaoslab.wire.http1 import BODILESS, unpack_body

# The largest body that is compared by its meaning, in bytes; a larger one by its digest.
COMPARED_MAX = 64 * 1024
LENGTHS = frozenset({"content-length", "content-encoding", "transfer-encoding"})
_FORM = "application/x-www-form-urlencoded"

Fields = Sequence[tuple[str, str]]


@fixed(frozen=True)
class HttpRequest:
    """A request that a service has read whole. `target`: path and query, as they were sent."""

    method: str
    target: str
    headers: Sequence[tuple[bytes, bytes]]
    body: bytes

    @cached_property
    def decoded_headers(self) -> list[tuple[str, str]]:
        """The headers as text."""
        return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in self.headers]

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    @property
    def query(self) -> str:
        return self.target.partition("?")[2]

    def get_header(self, name: bytes) -> str:
        """The header of this name in lower case; empty if there is none."""
        return next((value.decode("latin-1") for key, value in self.headers if key.lower() == name), "")

    def _parse_body_fields(self) -> tuple[str, dict[str, Any]]:
        """The kind of the body (object, form or other) and its fields. A client may call JSON a form, as urllib does by
        default."""
        try:
            value = decode_json(self.body) if self.body else {}
        except (ValueError, RecursionError):
            value = self.body.decode("utf-8", "replace")
        if isinstance(value, dict):
            return "object", value
        if self.get_header(b"content-type").startswith(_FORM):
            return "form", _parse_query_fields(self.body.decode("latin-1"))
        return "other", {"body": value}

    def parse_arguments(self) -> dict[str, Any]:
        """The arguments: the fields of the body, which is a JSON object or a form, and `query`, unless the body has a
        field of this name. Any other body is the field `body`. The credentials of a query are no part of it."""
        query = {
            name: MASK if is_secret_name(name) else value for name, value in _parse_query_fields(self.query).items()
        }
        return {**({"query": query} if query else {}), **self._parse_body_fields()[1]}

    def find_secrets(self, *, body: bool) -> set[str]:
        """The credentials in its headers and its query, and in its `body` if that is cut in a log."""
        credentials = find_secrets_in_headers(self.decoded_headers)
        if self.query:
            credentials |= find_secrets_in_query(self.query)
        return credentials | find_secrets_in_body(self.get_header(b"content-type"), self.body) if body else credentials

    def build_intent_key(self, meaning: Mapping[str, Any]) -> str:
        """The meaning as text, to tell if another request wants the same. Of a body that is very large, or nested very
        deeply, it is a digest."""
        if len(self.body) <= COMPARED_MAX:
            with suppress(RecursionError):
                return canonical([self.query, meaning])
        return canonical([self.query, sha256(self.body).hexdigest()])

    def with_arguments(self, value: Mapping[str, Any]) -> "HttpRequest":
        """The request with other arguments."""
        fields, query, (kind, was) = dict(value), self.query, self._parse_body_fields()
        if query and "query" not in was:
            original, changed = _parse_query_fields(query), fields.pop("query", {})
            if isinstance(changed, dict):
                changed = {
                    # A masked credential is no change; the service gets its own again.
                    name: original.get(name, value_) if value_ == MASK else value_
                    for name, value_ in changed.items()
                }
            query = urlencode(changed, doseq=True)
        if kind == "form":
            body = urlencode(fields, doseq=True).encode()
        else:
            content = fields["body"] if kind == "other" and list(fields) == ["body"] else fields
            body = json.dumps(content).encode() if self.body or fields else b""
        # The body has another length, and comes whole.
        headers = [(k, v) for k, v in self.headers if k.lower() not in (b"content-length", b"transfer-encoding")]
        headers.append((b"content-length", str(len(body)).encode()))
        return HttpRequest(self.method, f"{self.path}?{query}" if query else self.path, headers, body)


def _parse_query_fields(text: str) -> dict[str, Any]:
    """The fields of a query or a form; one that is given several times has a list of values."""
    fields: dict[str, Any] = {}
    for key, value in parse_qsl(text, keep_blank_values=True):
        if key in fields:
            fields[key] = [*(fields[key] if isinstance(fields[key], list) else [fields[key]]), value]
        else:
            fields[key] = value
    return fields


class ServedReply(Reply):
    """A reply as it goes over a connection. `fields` are its headers, repeated ones too, and `raw` its body, packed if
    the headers say so. `body` is unpacked."""

    fields: Fields
    raw: bytes

    def __init__(self, status: int, fields: Fields, raw: bytes) -> None:
        body = raw
        for name, codings in fields:
            if name.lower() == "content-encoding":
                with suppress(Failure):  # it is too large or in another coding, and passes as it is
                    body = unpack_body(raw, codings)
                break
        self.__dict__.update(
            status=status, headers=dict(fields), body=body, stream=None, pipes=(), fields=tuple(fields), raw=raw
        )  # at once, which takes half as long

    def with_value(self, value: Any) -> Reply:
        body = encode_text(self.encode_value(value))
        return ServedReply(self.status, set_content_length(self.fields, body), body)

    @classmethod
    def from_reply(cls, reply: Reply) -> "ServedReply":
        """A story's reply in this form."""
        if isinstance(reply, cls):
            return reply
        # 204 and 304 have no body, whatever a story has put there.
        body = b"" if reply.status in BODILESS else reply.body
        return cls(reply.status, set_content_length(list(reply.headers.items()), body), body)


def set_content_length(fields: Fields, body: bytes) -> list[tuple[str, str]]:
    """The headers with this body's length."""
    return [*((k, v) for k, v in fields if k.lower() not in LENGTHS), ("Content-Length", str(len(body)))]


def is_event_stream(fields: Iterable[tuple[str, str]]) -> bool:
    """True if the headers say that the body is a stream of events."""
    # By the value first, which most headers fail at once.
    return any(value.startswith((EVENT_STREAM, FRAMES)) and name.lower() == "content-type" for name, value in fields)


def has_body_in_parts(fields: Iterable[tuple[str, str]]) -> bool:
    """True if the headers say that the body comes in parts, each with a meaning of its own: a stream, or lines."""
    for name, value in fields:
        if name.lower() == "content-type" and (
            value.startswith((EVENT_STREAM, FRAMES)) or value.lower().startswith(IN_LINES)
        ):
            return True
    return False


def make_message_splitter(status: int, fields: Iterable[tuple[str, str]]) -> BodySplitter:
    """The cutter of a streamed body: into messages of a WebSocket, lines of JSON, frames, or server-sent events."""
    if status == UPGRADED:
        return WebSocketSplitter()
    kind = next((value.lower() for name, value in fields if name.lower() == "content-type"), "")
    return (
        LineSplitter() if kind.startswith(IN_LINES) else FrameSplitter() if kind.startswith(FRAMES) else EventSplitter()
    )


UPGRADED = 101
"""The status of an answer after which the connection speaks another protocol."""
FRAME_MAX = 4 * 1024 * 1024
"""The largest frame that is held back until it is complete, in bytes; a larger one passes in pieces."""
_CONTROL, _LAST = 0x08, 0x80


class WebSocketSplitter:
    """Cuts the bytes of one direction into messages, each with all its frames. A frame that controls the connection,
    such as a ping, is a message too, unless it comes in the middle of another one."""

    def __init__(self) -> None:
        self._held = b""
        self._end = 0
        """The end of the whole frames in what is held, which are the beginning of a message."""
        self._large = 0
        """The bytes that are missing of a frame that passes in pieces."""

    @property
    def rest(self) -> bytes:
        return self._held

    def feed(self, piece: bytes) -> list[bytes]:
        # A frame that passes in pieces comes before all else.
        large, complete = piece[: self._large], list[bytes]()
        self._large -= len(large)
        if large:
            complete.append(large)
        self._held += piece[len(large) :]
        while (size := _get_frame_size(self._held, self._end)) is not None:
            first, end = self._held[self._end], self._end + size
            is_whole = len(self._held) >= end
            if not is_whole and size <= FRAME_MAX:
                break
            alone = self._end == 0 and first & _CONTROL
            if (first & _LAST and not first & _CONTROL) or alone or not is_whole:
                complete.append(self._held[:end])
                self._large = max(0, end - len(self._held))
                self._held, self._end = self._held[end:], 0
            else:
                self._end = end
        return complete


def _get_frame_size(data: bytes, begin: int) -> int | None:
    """The size of the frame that begins there, with its head; None as long as the head does not tell it."""
    if len(data) < begin + 2:
        return None
    # 7 bits, or 16 or 64 behind them (RFC 6455, section 5.2).
    length, head = data[begin + 1] & 0x7F, 2
    if length >= 126:
        head += 2 if length == 126 else 8
        if len(data) < begin + head:
            return None
        length = int.from_bytes(data[begin + 2 : begin + head], "big")
    # A client's frames have a mask of 4 bytes.
    return head + (4 if data[begin + 1] & 0x80 else 0) + length
