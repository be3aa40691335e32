"""Connections used again, over real sockets: each for one request at a time, never one that leads nowhere."""

import asyncio
import gzip
import socket
import ssl
from collections.abc import Awaitable, Callable

import httpx
import pytest

from chaoslab.core.exchange import Failure, Reply
from chaoslab.wire.http1 import BODY_MAX, PART_MAX, BodyDecompressor, unpack_body
from chaoslab.wire.sending import (
    SocketFactory,
    Transport,
    _classify_error,
    decode_header,
    fetch_reply,
    gather_body,
    make_native_error,
)

TLS = httpx.create_ssl_context()
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n%b\r\n{}"
WITHIN_S = 20.0


class Service:
    """Answers 200 on any number of connections; to /never nobody answers.

    `ends`: the first of them is closed once its answer is out.
    """

    def __init__(self, *, ends: bool = False, header: bytes = b"") -> None:
        self.connections = self.closed = 0
        self._ends, self._header = ends, header
        self.over = asyncio.Event()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        first = self.connections == 1
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                if b"/never" in head:
                    await reader.read()
                    return
                writer.write(OK % self._header)
                if first and self._ends:
                    return
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()
            await writer.wait_closed()
            self.closed += 1
            self.over.set()

    def tried(self, story: Callable[[Transport, Callable[[str], httpx.Request]], Awaitable[None]]) -> None:
        async def main() -> None:
            server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
            port = server.sockets[0].getsockname()[1]
            way = SocketFactory().make_pooled_transport(TLS)
            async with server:
                await story(way, lambda path: httpx.Request("GET", f"http://127.0.0.1:{port}{path}"))
                await way.aclose()
                while self.closed < self.connections:
                    self.over.clear()
                    await asyncio.wait_for(self.over.wait(), WITHIN_S)

        asyncio.run(main())


async def asked(way: Transport, request: httpx.Request, *, within_s: float = WITHIN_S) -> int:
    return (await fetch_reply(way, request, within_s=within_s)).status


@pytest.mark.parametrize(("sent", "read"), [("Zürich".encode(), "Zürich"), ("Zürich".encode("latin-1"), "Zürich")])
def test_a_header_s_text_is_utf_8_or_else_latin_1(sent: bytes, read: str) -> None:
    assert decode_header(sent) == read


def test_a_header_that_comes_twice_has_both_values() -> None:
    async def story(way: Transport, get: Callable[[str], httpx.Request]) -> None:
        reply = await fetch_reply(way, get("/"), within_s=WITHIN_S)
        assert reply.headers["set-cookie"] == "a=1, b=2"

    Service(header=b"Set-Cookie: a=1\r\nset-cookie: b=2\r\n").tried(story)


def test_one_connection_serves_requests_that_follow_each_other() -> None:
    service = Service()

    async def story(way: Transport, to: Callable[[str], httpx.Request]) -> None:
        assert [await asked(way, to(f"/{n}")) for n in range(5)] == [200] * 5

    service.tried(story)
    assert service.connections == 1


def test_requests_at_once_have_a_connection_each_and_leave_them_to_later_ones() -> None:
    service = Service()

    async def story(way: Transport, to: Callable[[str], httpx.Request]) -> None:
        for _ in range(2):
            assert await asyncio.gather(*(asked(way, to(f"/{n}")) for n in range(3))) == [200] * 3

    service.tried(story)
    assert service.connections == 3


@pytest.mark.parametrize("header", [b"", b"Connection: close\r\n"], ids=["without a word", "as it said it would"])
def test_a_connection_that_the_service_closed_is_not_used_again(header: bytes) -> None:
    service = Service(ends=True, header=header)

    async def story(way: Transport, to: Callable[[str], httpx.Request]) -> None:
        assert await asked(way, to("/first")) == 200
        await asyncio.wait_for(service.over.wait(), WITHIN_S)
        assert await asked(way, to("/second")) == 200

    service.tried(story)
    assert service.connections == 2


def test_a_connection_that_still_owes_an_answer_is_not_used_again() -> None:
    service = Service()

    async def story(way: Transport, to: Callable[[str], httpx.Request]) -> None:
        assert await asked(way, to("/first")) == 200
        with pytest.raises(Failure, match="timed_out"):
            await asked(way, to("/never"), within_s=0.05)
        assert await asked(way, to("/second")) == 200

    service.tried(story)
    assert service.connections == 2


class Told:
    """A stream of these parts."""

    def __init__(self, *parts: bytes) -> None:
        self.parts: list[bytes | None] = [*parts, None]
        self.closed = 0

    async def read_part(self) -> bytes | None:
        return self.parts.pop(0)

    async def aclose(self) -> None:
        self.closed += 1


@pytest.mark.parametrize(
    ("parts", "most", "whole"), [((b"ab", b"c"), 3, True), ((b"ab", b"c"), 2, False), ((), 0, True)]
)
def test_a_stream_is_made_whole_up_to_a_size_and_is_closed(parts: tuple[bytes, ...], most: int, whole: bool) -> None:
    stream = Told(*parts)
    if whole:
        reply = asyncio.run(gather_body(Reply(200, {}, b"", stream), stream, most=most))
        assert (reply.body, reply.stream) == (b"".join(parts), None)
    else:
        with pytest.raises(Failure, match="too_large"):
            asyncio.run(gather_body(Reply(200, {}, b"", stream), stream, most=most))
    assert stream.closed == 1


PACKED = gzip.compress(b"words")


@pytest.mark.parametrize(
    ("body", "codings", "found"),
    [
        (b"words", "", b"words"), (b"words", "identity", b"words"), (PACKED, "gzip", b"words"),
        (PACKED, " X-GZip , identity", b"words"), (b"", "gzip", b""), (b"words", "br", "garbled"),
        (b"words", "gzip", "garbled"), (PACKED[:-1], "gzip", "garbled"),
        (gzip.compress(bytes(BODY_MAX)), "gzip", bytes(BODY_MAX)),
        (gzip.compress(bytes(BODY_MAX + 1)), "gzip", "too_large"),
    ],
    ids=range(10),
)  # fmt: skip
def test_a_body_is_unpacked_whole_as_it_is_part_by_part(body: bytes, codings: str, found: bytes | str) -> None:
    def in_parts() -> bytes:
        unpacker, whole = BodyDecompressor(codings), b""
        for begin in range(0, len(body), 1000):
            unpacker.feed(body[begin : begin + 1000])
            while part := unpacker.decompress_next_part():
                assert len(part) <= PART_MAX
                whole += part
        if body:
            unpacker.raise_if_truncated()
        return whole

    def outcome(call: Callable[[], bytes]) -> bytes | str:
        try:
            return call()
        except Failure as failure:
            return failure.kind

    assert outcome(lambda: unpack_body(body, codings)) == found
    if found != "too_large":  # whoever takes parts bounds the whole
        assert outcome(in_parts) == found


@pytest.mark.parametrize(
    ("error", "cause", "kind"),
    [
        (httpx.ReadTimeout, None, "timed_out"), (httpx.ConnectTimeout, None, "timed_out"),
        (httpx.PoolTimeout, None, "timed_out"), (httpx.ConnectError, None, "refused"),
        (httpx.ConnectError, ConnectionRefusedError(), "refused"),
        (httpx.ConnectError, socket.gaierror(socket.EAI_NONAME, "Name or service not known"), "dns"),
        (httpx.ConnectError, ssl.SSLEOFError(), "closed"),
        (httpx.ConnectError, ssl.SSLCertVerificationError(), "untrusted"),
        (httpx.ConnectError, ssl.SSLError(), "garbled"), (httpx.ConnectError, ConnectionResetError(), "reset"),
        (httpx.ConnectError, BrokenPipeError(), "reset"), (httpx.ReadError, None, "reset"),
        (httpx.RemoteProtocolError, "Server disconnected without sending a response.", "closed"),
        (httpx.RemoteProtocolError, "peer closed connection without sending complete message body", "closed"),
        (httpx.RemoteProtocolError, "illegal status line", "garbled"), (httpx.DecodingError, None, "garbled"),
    ],
)  # fmt: skip
def test_an_error_of_httpx_is_a_kind_of_failure(
    error: type[httpx.HTTPError], cause: BaseException | str | None, kind: str
) -> None:
    raised = error(cause if isinstance(cause, str) else "said")
    raised.__cause__ = OSError("in between")
    raised.__cause__.__context__ = cause if isinstance(cause, BaseException) else None
    assert _classify_error(raised) == kind


@pytest.mark.parametrize(
    ("kind", "error", "words"),
    [
        ("timed_out", httpx.ReadTimeout, "the model: timed out after 1.5 s"),
        ("refused", httpx.ConnectError, "the model: refused after 1.5 s"),
        ("reset", httpx.ReadError, "the model: reset after 1.5 s"),
        ("closed", httpx.RemoteProtocolError, "the model: closed after 1.5 s"),
        ("too_large", httpx.RemoteProtocolError, "the model: more than 4194304 bytes after 1.5 s"),
        ("garbled", httpx.RemoteProtocolError, "the model: an answer that is not HTTP as it should be after 1.5 s"),
        ("dns", httpx.ConnectError, "[Errno -2] Name or service not known"),
    ],
)
def test_a_failure_is_the_clients_own_exception(kind: str, error: type[Exception], words: str) -> None:
    request = httpx.Request("GET", "http://model/")
    found = make_native_error(Failure(kind), request, who="the model", after_s=1.5)
    assert (type(found), str(found), found.request) == (error, words, request)  # type: ignore[attr-defined]
    own = Failure(kind)
    own.native = LookupError("mine")
    assert make_native_error(own, request, who="the model", after_s=1.5) is own.native
