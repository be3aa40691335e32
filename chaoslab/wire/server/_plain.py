"""Reads and answers the requests that clients usually send, without a full HTTP parser. h11 reads all others."""

from __future__ import annotations

import re
from http import HTTPStatus

from chaoslab.base.phrases import phrase
from chaoslab.wire.server.rest import RestRequest, RestResponse

PLAIN_BYTES_MAX = 8192
WHOLE_BYTES_MAX = 2048  # a longer body goes out in chunks, as Go's does
HEAD = re.compile(
    rb"(GET|POST|PATCH|PUT|DELETE) (/[!-~]*) HTTP/1\.1\r\n((?:[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t -~]*\r\n)+)\r\n"
)
HOST = re.compile(rb"[!$%&'()*+,\-.0-9:;=@A-Z\[\]_a-z~]*")  # the bytes that Go allows in a host
SIZE = re.compile(rb"[0-9]{1,7}")
ODD = {b"transfer-encoding", b"expect", b"upgrade", b"trailer"}


class NotPlain(Exception):
    """A request for h11 to read."""


def read(buffer: bytearray, *, body_max: int) -> tuple[RestRequest, int] | None:
    """The first request of the buffer and its size, or None if it is not all there yet. Raises NotPlain: h11 must read
    it. It may be valid or not."""
    end = buffer.find(b"\r\n\r\n", 0, PLAIN_BYTES_MAX)
    head = HEAD.match(buffer) if end >= 0 else None
    if head is None:
        raise NotPlain
    fields: dict[bytes, bytes] = {}
    for line in head[3].split(b"\r\n")[:-1]:
        name, _, value = line.partition(b":")
        name = name.lower()
        if name in fields or name in ODD:
            raise NotPlain
        fields[name] = value.strip(b" \t")
    size = fields.get(b"content-length", b"0")
    if (
        HOST.fullmatch(fields.get(b"host", b"\0")) is None
        or SIZE.fullmatch(size) is None
        or int(size) > body_max
        or fields.get(b"connection", b"keep-alive").lower() != b"keep-alive"
    ):
        raise NotPlain
    whole = head.end() + int(size)
    if len(buffer) < whole:
        return None
    agent, host = fields.get(b"user-agent", b"").decode("latin-1"), fields[b"host"].decode()
    origin = fields[b"origin"].decode("latin-1") if b"origin" in fields else None
    return RestRequest(
        head[1].decode(), head[2].decode(), bytes(buffer[head.end() : whole]), agent, host, origin
    ), whole


def spell(response: RestResponse, date: str) -> bytes:
    """The bytes of an answer to a plain request, the same as h11 would make."""
    lines = [f"HTTP/1.1 {response.status} {phrase(response.status)}"]
    if response.content_type is not None:
        lines.append(f"Content-Type: {response.content_type}")
    lines += [f"{name}: {value}" for name, value in response.headers.items()]
    lines.append(f"Date: {date}")
    body = response.body
    if response.status != HTTPStatus.NO_CONTENT and "Content-Length" not in response.headers:
        if len(body) > WHOLE_BYTES_MAX:
            lines.append("Transfer-Encoding: chunked")
            body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
        else:
            lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "\r\n"]).encode("latin-1") + body
