"""Plain exchanges are read and spelt as h11 does it, which is the measure of all others."""

from itertools import pairwise

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaoslab.wire.http1 import Malformed
from chaoslab.worlds.virtual._plain import (
    BODY_MAX,
    HEAD_KEPT_MAX,
    Chunks,
    answer_head,
    asked_in,
    may_become_plain,
)

GET = b"GET /orders?n=1 HTTP/1.1\r\nHost: shop.test\r\nX-Two:  b \r\n\r\n"


def in_chunks(parts: list[bytes]) -> bytes:
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts if part) + b"0\r\n\r\n"


def by_h11(data: list[bytes]) -> tuple[bytes, bytes | None]:
    """The body, and the bytes after it; None while it has no end.

    Raises:
        h11.RemoteProtocolError: it is malformed.
    """
    http = h11.Connection(h11.CLIENT)
    http.send(h11.Request(method="GET", target="/", headers=[("Host", "a")]))
    http.send(h11.EndOfMessage())
    http.receive_data(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    body, ended = b"", False
    for part in data:
        http.receive_data(part)
        while (event := http.next_event()) is not h11.NEED_DATA and event is not h11.PAUSED:
            body += bytes(event.data) if isinstance(event, h11.Data) else b""
            ended = ended or isinstance(event, h11.EndOfMessage)
    return body, http.trailing_data[0] if ended else None


def by_chunks(data: list[bytes]) -> tuple[bytes, bytes | None]:
    chunks = Chunks()
    body = b""
    for part in data:
        if chunks.rest is None:
            body += b"".join(chunks.take(part))
        else:
            chunks.rest += part
    return body, chunks.rest


def cut(data: bytes, places: list[int]) -> list[bytes]:
    at = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [part for a, b in pairwise(at) if (part := data[a:b])]


@given(st.lists(st.binary(max_size=40), max_size=5), st.lists(st.integers(0, 400), max_size=8), st.binary(max_size=5))
def test_chunks_are_read_wherever_they_are_cut(parts: list[bytes], places: list[int], rest: bytes) -> None:
    data = cut(in_chunks(parts) + rest, places)
    assert by_chunks(data) == by_h11(data) == (b"".join(parts), rest)


@pytest.mark.parametrize(
    "data",
    [
        b"3\r\nabc\r\n0\r\nX-After: 1\r\n\r\n",
        b"3;name=value\r\nabc\r\n0\r\n\r\n",
        b"3 \r\nabc\r\n0\r\n\r\n",
        b"A\r\n0123456789\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n",
        b"3\r\nab",
        b"3\r\nabc",
        b"3\r\nabc\r",
        b"0\r\n",
        b"00\r\n\r\n",
    ],
)
def test_unusual_chunks_are_read_as_by_h11(data: bytes) -> None:
    assert by_chunks([data]) == by_chunks([data[n : n + 1] for n in range(len(data))]) == by_h11([data])


@pytest.mark.parametrize(
    "data", [b"x\r\nabc\r\n", b"3\r\nabcd\r\n", b"\r\n", b"-3\r\nabc\r\n", b"+3\r\nabc\r\n", b"3\r\nabc\n\n0\r\n\r\n"]
)
def test_malformed_chunks_are_refused_as_by_h11(data: bytes) -> None:
    with pytest.raises(Malformed):
        by_chunks([data])
    with pytest.raises(h11.RemoteProtocolError):
        by_h11([data])


def test_a_line_without_an_end_is_not_kept_for_ever() -> None:
    with pytest.raises(Malformed):
        by_chunks([b"1" * (HEAD_KEPT_MAX + 1)])


def test_a_head_is_read_once() -> None:
    asked = asked_in(GET + b"GET ")
    assert asked is not None
    assert (asked.method, asked.target, asked.size) == (b"GET", b"/orders?n=1", 0)
    assert asked.headers == [(b"host", b"shop.test"), (b"x-two", b"b")]
    assert asked_in(GET) is asked
    assert asked_in(GET[:-1]) is None
    assert may_become_plain(GET[:-1])
    assert not may_become_plain(GET)


@pytest.mark.parametrize(
    "field",
    [
        b"Transfer-Encoding: chunked", b"Expect: 100-continue", b"Upgrade: websocket", b"Connection: close",
        b"Content-Length: %d" % (BODY_MAX + 1), b"Content-Length: -1", b"Host: other.test", b"no colon",
        b"X-Large: " + b"x" * HEAD_KEPT_MAX,
    ],
)  # fmt: skip
def test_what_is_not_plain_is_left_to_h11(field: bytes) -> None:
    data = GET.replace(b"\r\n\r\n", b"\r\n%s\r\n\r\n" % field)
    assert asked_in(data) is None
    assert not may_become_plain(data)


@pytest.mark.parametrize(
    ("status", "fields"),
    [(204, [("x", "1")]), (304, []), (100, []), (200, [("connection", "close"), ("content-length", "1")]),
     (200, [("transfer-encoding", "chunked")]), (200, [("content-length", "1"), ("x", "a\nb")])],
)  # fmt: skip
def test_an_answer_that_is_not_plain_is_left_to_h11(status: int, fields: list[tuple[str, str]]) -> None:
    assert answer_head(status, fields, "") is None


def test_an_answer_without_a_length_goes_in_chunks_and_ends_its_connection() -> None:
    told = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n"
    assert answer_head(200, [("content-type", "text/plain"), ("content-length", "2")], "OK") == (
        told + b"content-length: 2\r\n\r\n"
    )
    head = answer_head(200, [("content-type", "text/plain")], "OK")
    assert head is not None
    assert {b"Transfer-Encoding: chunked", b"connection: close"} <= set(head.split(b"\r\n"))
