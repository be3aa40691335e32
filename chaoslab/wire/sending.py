"""Sends one HTTP request over one transport. Each way in which it can end has an exchange's name for it. A reply is
read whole, or part by part if it is a stream of events and its caller asked for one. Over sockets it uses httpcore,
below httpx, since the caller's client has done httpx's own work already."""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
from collections.abc import AsyncIterable, Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Protocol, cast

import anyio
import httpcore
import httpx

from chaoslab.base.durations import format_duration
from chaoslab.core.exchange import Failure, Reply
from chaoslab.core.stream import EVENT_STREAM, BodyParts
from chaoslab.wire.http1 import ACCEPTED, BODY_MAX, BodyDecompressor, read_body

Address = tuple[str, int]
Headers = list[tuple[bytes, bytes]]


class Transport(Protocol):
    """Sends requests to addresses."""

    async def send_request(self, request: httpx.Request, to: Address, headers: Headers, body: bytes) -> Reply:
        """The reply to this request, sent to the address `to` with these headers and this body. It is whole, or a
        stream whose parts its caller takes, if `is_event_stream`. Raises httpx.TransportError: there was none. Failure:
        it cannot be read."""

    async def aclose(self) -> None: ...


async def fetch_reply(
    transport: Transport,
    request: httpx.Request,
    *,
    within_s: float,
    to: Address | None = None,
    body: bytes | None = None,
    streams: bool = False,
) -> Reply:
    """The whole reply, body included. `to`: another address; Host, SNI and the certificate's name stay the target's.
    `body`: a body in place of the request's. `streams`: a stream of events comes in parts, and only its head is waited
    for. Raises Failure: there was none, or it took longer than `within_s`."""
    # A client may accept codings that nothing here unpacks, and stories need the reply's value.
    headers = [_PACKED if name.lower() == b"accept-encoding" else (name, value) for name, value in request.headers.raw]
    if body is not None:
        # A story may have changed the body, and so its length.
        headers = [(name, value) for name, value in headers if name.lower() != b"content-length"]
        headers.append((b"content-length", str(len(body)).encode()))
    try:
        # One deadline over all: httpx's timeouts are for each read, so a body that trickles would never meet them.
        async with asyncio.timeout(within_s):
            reply = await transport.send_request(
                request, to or _get_url_address(request.url), headers, request.content if body is None else body
            )
            # Without `streams` nobody takes parts, so a stream of events is read like any other body.
            return reply if streams or reply.stream is None else await gather_body(reply, reply.stream)
    except TimeoutError as error:
        raise Failure("timed_out") from error
    except httpx.TransportError as known:
        raise make_failure_from_error(known) from known


def make_failure_from_error(error: httpx.TransportError) -> Failure:
    """The exchange's name for an error of the client."""
    return Failure(_classify_error(error), native=error)


_PACKED = (b"accept-encoding", ACCEPTED.encode())


def _get_url_address(url: httpx.URL) -> Address:
    return url.raw_host.decode("ascii"), url.port or (443 if url.scheme == "https" else 80)


def make_reply(status: int, headers: dict[str, str], body: bytes, stream: BodyParts | None = None) -> Reply:
    """The reply without the headers that describe the transfer. `headers`: by name in lower case."""
    # They tell of the bytes on the wire. Left in place they would make the client unpack once more.
    for name in ("content-encoding", "content-length", "transfer-encoding"):
        headers.pop(name, None)
    return Reply(status, headers, body, stream)


def is_event_stream(status: int, headers: Mapping[str, str]) -> bool:
    """Tells if a reply's body is a stream of events. `headers`: by name in lower case."""
    # Only with 200: the body of an error is read whole, since stories and the log read its value.
    return status == 200 and headers.get("content-type", "").startswith(EVENT_STREAM)


async def gather_body(reply: Reply, parts: BodyParts, *, most: int = BODY_MAX) -> Reply:
    """A streamed reply made whole, of at most so many bytes. Raises Failure: it broke off, or is too large."""
    body = bytearray()
    try:
        while (piece := await parts.read_part()) is not None:
            body += piece
            if len(body) > most:
                raise Failure("too_large")
    finally:
        await parts.aclose()
    return replace(reply, body=bytes(body), stream=None)


def index_headers(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Headers by name in lower case. The values of a repeated one are joined with commas."""
    values: dict[str, str] = {}
    for key, text in pairs:
        name = key.lower()
        # RFC 9110, section 5.3, joins a repeated field with commas.
        values[name] = f"{values[name]}, {text}" if name in values else text
    return values


def decode_header(value: bytes) -> str:
    """A header's value, decoded as UTF-8 or else as Latin-1."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        # Latin-1 takes any byte, so that no header fails here.
        return value.decode("latin-1")


# Seconds for which an idle connection is kept.
# httpx's own defaults, this and the next, so that connections are used again as they are without the lab.
KEPT_S = 5.0
# The most idle connections to one address.
KEPT_MAX = 20


class SocketFactory:
    """The factory of transports over TCP."""

    def make_pooled_transport(self, tls: ssl.SSLContext) -> Transport:
        """A transport whose connections are used again."""
        return _PooledTransport(tls)

    def make_fresh_transport(self, tls: ssl.SSLContext, request: httpx.Request, address: Address) -> Transport:
        """A transport with a connection for this request alone."""
        return _SingleUseTransport(_make_connection(tls, request, address))


def _make_connection(tls: ssl.SSLContext, request: httpx.Request, to: Address) -> httpcore.AsyncHTTPConnection:
    """A connection of httpcore, which httpx itself uses."""
    origin = httpcore.Origin(request.url.raw_scheme, to[0].encode(), to[1])
    return httpcore.AsyncHTTPConnection(origin, tls, keepalive_expiry=KEPT_S)


class _SingleUseTransport:
    def __init__(self, connection: httpcore.AsyncHTTPConnection) -> None:
        self._connection = connection

    async def send_request(self, request: httpx.Request, to: Address, headers: Headers, body: bytes) -> Reply:
        return await _send_and_read_reply(self._connection, request, to, headers, body, _do_nothing)

    async def aclose(self) -> None:
        await self._connection.aclose()


async def _do_nothing() -> None:
    """Does nothing: the transport is closed by its owner."""


class _PooledTransport:
    """A transport with one connection a request, used again once the reply is here. httpcore's pool would do the same,
    but it goes through all its connections twice for each request."""

    def __init__(self, tls: ssl.SSLContext) -> None:
        self._tls = tls
        self._idle: dict[tuple[str, Address], list[httpcore.AsyncHTTPConnection]] = {}

    async def send_request(self, request: httpx.Request, to: Address, headers: Headers, body: bytes) -> Reply:
        idle = self._idle.setdefault((request.url.scheme, to), [])
        connection = await _pop_idle_connection(idle) or _make_connection(self._tls, request, to)

        async def release_connection() -> None:
            # Not available: it broke off in the middle, or the server said that it closes.
            if connection.is_available() and len(idle) < KEPT_MAX:
                idle.append(connection)
            else:
                await connection.aclose()

        return await _send_and_read_reply(connection, request, to, headers, body, release_connection)

    async def aclose(self) -> None:
        for idle in self._idle.values():
            while idle:
                await idle.pop().aclose()


async def _pop_idle_connection(idle: list[httpcore.AsyncHTTPConnection]) -> httpcore.AsyncHTTPConnection | None:
    """The connection used last that the other side has not closed meanwhile."""
    while idle:
        # The last one used is the least likely to have been closed. httpcore looks here if its socket has an end to
        # read.
        connection = idle.pop()
        if not connection.has_expired():
            return connection
        await connection.aclose()
    return None


async def _send_and_read_reply(
    connection: httpcore.AsyncHTTPConnection,
    request: httpx.Request,
    to: Address,
    headers: Headers,
    body: bytes,
    release: Callable[[], Awaitable[None]],
) -> Reply:
    """The reply over this connection. `release` is called when no more of it will be read."""
    streams: list[Any] = []
    streamed: _StreamedBody | None = None
    try:
        response = await connection.handle_async_request(_build_request(request, to, headers, body, streams))
        reply_headers = index_headers((key.decode("latin-1"), decode_header(value)) for key, value in response.headers)
        try:
            codings = reply_headers.get("content-encoding", "")
            if is_event_stream(response.status, reply_headers):
                streamed = _StreamedBody(response, request, codings, release)
                # From here on the body owns the connection: nothing below gives it back.
                return make_reply(response.status, reply_headers, b"", streamed)
            content = await read_body(response.aiter_stream(), codings)
        finally:
            # Also of a body that was refused as too large or garbled: with bytes unread the connection cannot be used
            # again.
            if streamed is None:
                await response.aclose()
    except _ENDS as error:
        await _close_streams(streams)
        raise _to_httpx_error(error, request) from error
    except BaseException:
        await _close_streams(streams)
        raise
    finally:
        # Only now: over a connection that is offered before its reply is read, a second request could go.
        if streamed is None:
            await release()
    return make_reply(response.status, reply_headers, content)


class _StreamedBody:
    """The body of a streamed reply over a connection of httpcore. A body that ended leaves its connection to later
    requests; one that is closed before its end takes its connection with it."""

    def __init__(
        self, response: httpcore.Response, request: httpx.Request, codings: str, on_end: Callable[[], Awaitable[None]]
    ) -> None:
        self._response, self._request, self._over = response, request, on_end
        self._unpacker = BodyDecompressor(codings)
        self._parts = aiter(cast(AsyncIterable[bytes], response.stream))
        self._closed = False

    async def read_part(self) -> bytes | None:
        # A packed part may unpack to nothing yet, or to several pieces, so the unpacker is asked before the line.
        try:
            while not (piece := self._unpacker.decompress_next_part()):
                packed = await anext(self._parts, None)
                if packed is None:
                    # A stream that ends in the middle of its packing was cut, as a whole body would be.
                    self._unpacker.raise_if_truncated()
                    return None
                self._unpacker.feed(packed)
            return piece
        except _ENDS as error:
            transport_error = _to_httpx_error(error, self._request)
            raise make_failure_from_error(transport_error) from error

    async def aclose(self) -> None:
        if not self._closed:
            self._closed = True
            try:
                # In this order: httpcore knows that the connection is free only once its response is closed.
                await self._response.aclose()
            finally:
                await self._over()


async def _close_streams(streams: list[Any]) -> None:
    """Closes streams, since httpcore forgets a connection that is cancelled in its TLS handshake."""
    for stream in streams:
        await stream.aclose()


_ENDS = (
    httpcore.TimeoutException,
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.ProxyError,
    httpcore.UnsupportedProtocol,
)


def _build_request(
    request: httpx.Request, to: Address, headers: Headers, body: bytes, streams: list[Any]
) -> httpcore.Request:
    url, (host, port) = request.url, to
    # The timeouts that the program set for its client are part of what is tried.
    extensions: dict[str, Any] = {"timeout": request.extensions.get("timeout", {})}
    if url.scheme == "https":

        async def collect_stream(step: str, about: Mapping[str, Any]) -> None:
            # Here httpcore has the socket, and keeps it only once TLS stands.
            if step == "connection.connect_tcp.complete":
                streams.append(about["return_value"])

        # Without it TLS would ask for the lane's address, for which no certificate is made out.
        extensions |= {"trace": collect_stream, "sni_hostname": url.host}
    origin = httpcore.URL(scheme=url.raw_scheme, host=host.encode(), port=port, target=url.raw_path)
    return httpcore.Request(request.method, origin, headers=headers, content=body, extensions=extensions)


def _to_httpx_error(error: Exception, request: httpx.Request) -> httpx.TransportError:
    """The error of httpx with the same name as one of httpcore."""
    # The two libraries give their errors the same names.
    kind: type[httpx.TransportError] = getattr(httpx, type(error).__name__, httpx.TransportError)
    return kind(str(error), request=request)


NEVER_SENT = {
    # -2 is glibc's EAI_NONAME, as programs on Linux read it.
    "dns": "[Errno -2] Name or service not known",
    "untrusted": "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: certificate has expired (_ssl.c:1000)",
}
"""The failures before a connection stands, with the words of the client's error."""


def make_native_error(failure: Failure, request: httpx.Request, *, who: str, after_s: float) -> Exception:
    """The client's own exception for such a failure."""
    if isinstance(failure.native, Exception):
        return failure.native
    kinds: dict[str, type[httpx.TransportError]] = {
        "timed_out": httpx.ReadTimeout,
        "refused": httpx.ConnectError,
        "reset": httpx.ReadError,
    }
    if failure.kind in NEVER_SENT:  # in httpx's own words
        return httpx.ConnectError(NEVER_SENT[failure.kind], request=request)
    phrases = {"too_large": f"more than {BODY_MAX} bytes", "garbled": "an answer that is not HTTP as it should be"}
    # In one digit: the words go on to the model, and a clock that wakes late must not make them others.
    message = f"{who}: {phrases.get(failure.kind, failure.kind.replace('_', ' '))} after {format_duration(after_s, 1)}"
    return kinds.get(failure.kind, httpx.RemoteProtocolError)(message, request=request)


# Found in the messages of httpcore and h11 about an end that came too early. Their others are about bytes that are not
# HTTP.
_CLOSED = re.compile("disconnected|closed connection")


def _classify_error(error: httpx.HTTPError) -> str:
    if isinstance(error, httpx.TimeoutException):
        return "timed_out"
    if isinstance(error, httpx.ConnectError):
        return _classify_connect_error(error)
    if isinstance(error, httpx.RemoteProtocolError):
        return "closed" if _CLOSED.search(str(error)) else "garbled"
    return "reset" if isinstance(error, httpx.NetworkError) else "garbled"


def _classify_connect_error(error: httpx.ConnectError) -> str:
    """The kind of failure behind httpx's ConnectError: no such name, no listener, or (under TLS) an end, a reset or a
    wrong certificate."""
    # Walked from the outside in, since httpx, httpcore and anyio each wrap the error of the socket.
    cause: BaseException | None = error
    while cause is not None:
        # Python 3.11.2 has the second for an end in the middle of it too.
        if isinstance(cause, ssl.SSLEOFError | ssl.SSLZeroReturnError | anyio.EndOfStream):
            return "closed"
        if isinstance(cause, socket.gaierror):  # DNS: as of a container that was killed
            return "dns"
        if isinstance(cause, ssl.SSLCertVerificationError):
            return "untrusted"
        # Below the certificate's error and the early end, which are classes of it.
        if isinstance(cause, ssl.SSLError):
            return "garbled"
        if isinstance(cause, ConnectionResetError | BrokenPipeError | anyio.BrokenResourceError):
            return "reset"
        cause = cause.__cause__ or cause.__context__
    return "refused"
