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

from chaoslab.base.durations import duration
from chaoslab.core.exchange import Failure, Reply
from chaoslab.core.stream import EVENT_STREAM, Parts
from chaoslab.wire.http1 import ACCEPTED, BODY_MAX, Unpacker, read_whole

Address = tuple[str, int]
Headers = list[tuple[bytes, bytes]]


class Transport(Protocol):
    """Sends requests to addresses."""

    async def ask(self, request: httpx.Request, to: Address, headers: Headers, body: bytes) -> Reply:
        """The reply to this request, sent to the address `to` with these headers and this body. It is whole, or a
        stream whose parts its caller takes, if `is_stream`. Raises httpx.TransportError: there was none. Failure: it
        cannot be read."""

    async def aclose(self) -> None: ...


class TransportFactory(Protocol):
    """Makes a seam's transports to its targets."""

    def kept(self, tls: ssl.SSLContext) -> Transport:
        """A transport whose connections are used again."""

    def standing(self, tls: ssl.SSLContext) -> Transport:
        """A transport to lanes that stay for several calls, whose connections are used again."""

    def fresh(self, tls: ssl.SSLContext, request: httpx.Request, address: Address) -> Transport:
        """A transport with a connection for this request alone."""


async def send(
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
    headers = [_PACKED if name.lower() == b"accept-encoding" else (name, value) for name, value in request.headers.raw]
    if body is not None:
        headers = [(name, value) for name, value in headers if name.lower() != b"content-length"]
        headers.append((b"content-length", str(len(body)).encode()))
    try:
        async with asyncio.timeout(within_s):
            reply = await transport.ask(
                request, to or _address(request.url), headers, request.content if body is None else body
            )
            return reply if streams or reply.stream is None else await gather_body(reply, reply.stream)
    except TimeoutError as error:
        raise Failure("timed_out") from error
    except httpx.TransportError as known:
        raise failure_of(known) from known


def failure_of(error: httpx.TransportError) -> Failure:
    """The exchange's name for an error of the client."""
    return Failure(_kind(error), native=error)


_PACKED = (b"accept-encoding", ACCEPTED.encode())


def _address(url: httpx.URL) -> Address:
    return url.raw_host.decode("ascii"), url.port or (443 if url.scheme == "https" else 80)


def reply_of(status: int, headers: dict[str, str], body: bytes, stream: Parts | None = None) -> Reply:
    """The reply without the headers that describe the transfer. `headers`: by name in lower case."""
    for name in ("content-encoding", "content-length", "transfer-encoding"):
        headers.pop(name, None)
    return Reply(status, headers, body, stream)


def is_stream(status: int, headers: Mapping[str, str]) -> bool:
    """Tells if a reply's body is a stream of events. `headers`: by name in lower case."""
    return status == 200 and headers.get("content-type", "").startswith(EVENT_STREAM)


async def gather_body(reply: Reply, parts: Parts, *, most: int = BODY_MAX) -> Reply:
    """A streamed reply made whole, of at most so many bytes. Raises Failure: it broke off, or is too large."""
    body = bytearray()
    try:
        while (piece := await parts.take()) is not None:
            body += piece
            if len(body) > most:
                raise Failure("too_large")
    finally:
        await parts.aclose()
    return replace(reply, body=bytes(body), stream=None)


def by_name(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Headers by name in lower case. The values of a repeated one are joined with commas."""
    addresses: dict[str, str] = {}
    for key, text in pairs:
        name = key.lower()
        addresses[name] = f"{addresses[name]}, {text}" if name in addresses else text
    return addresses


def text_of(value: bytes) -> str:
    """A header's value, decoded as UTF-8 or else as Latin-1."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


KEPT_S = 5.0
"""Seconds for which an idle connection is kept."""
KEPT_MAX = 20
"""The most idle connections to one address."""


class SocketFactory:
    """The factory of transports over TCP."""

    def kept(self, tls: ssl.SSLContext) -> Transport:
        return _Kept(tls)

    def standing(self, tls: ssl.SSLContext) -> Transport:
        return _Kept(tls)

    def fresh(self, tls: ssl.SSLContext, request: httpx.Request, address: Address) -> Transport:
        return _Fresh(_connection(tls, request, address))


def _connection(tls: ssl.SSLContext, request: httpx.Request, to: Address) -> httpcore.AsyncHTTPConnection:
    """A connection of httpcore, which httpx itself uses."""
    origin = httpcore.Origin(request.url.raw_scheme, to[0].encode(), to[1])
    return httpcore.AsyncHTTPConnection(origin, tls, keepalive_expiry=KEPT_S)


class _Fresh:
    def __init__(self, connection: httpcore.AsyncHTTPConnection) -> None:
        self._connection = connection

    async def ask(self, request: httpx.Request, to: Address, headers: Headers, body: bytes) -> Reply:
        return await _exchange(self._connection, request, to, headers, body, _later)

    async def aclose(self) -> None:
        await self._connection.aclose()


async def _later() -> None:
    """Does nothing: the transport is closed by its owner."""


class _Kept:
    """A transport with one connection a request, used again once the reply is here. httpcore's pool would do the same,
    but it goes through all its connections twice for each request."""

    def __init__(self, tls: ssl.SSLContext) -> None:
        self._tls = tls
        self._idle: dict[tuple[str, Address], list[httpcore.AsyncHTTPConnection]] = {}

    async def ask(self, request: httpx.Request, to: Address, headers: Headers, body: bytes) -> Reply:
        idle = self._idle.setdefault((request.url.scheme, to), [])
        connection = await _usable(idle) or _connection(self._tls, request, to)

        async def is_over() -> None:
            if connection.is_available() and len(idle) < KEPT_MAX:
                idle.append(connection)
            else:
                await connection.aclose()

        return await _exchange(connection, request, to, headers, body, is_over)

    async def aclose(self) -> None:
        for idle in self._idle.values():
            while idle:
                await idle.pop().aclose()


async def _usable(idle: list[httpcore.AsyncHTTPConnection]) -> httpcore.AsyncHTTPConnection | None:
    """The connection used last that the other side has not closed meanwhile."""
    while idle:
        connection = idle.pop()
        if not connection.has_expired():
            return connection
        await connection.aclose()
    return None


async def _exchange(
    connection: httpcore.AsyncHTTPConnection, request: httpx.Request, to: Address, headers: Headers, body: bytes,
    is_over: Callable[[], Awaitable[None]],
) -> Reply:  # fmt: skip
    """The reply over this connection. `is_over` is called when no more of it will be read."""
    opened: list[Any] = []
    streamed: _Body | None = None
    try:
        response = await connection.handle_async_request(_request(request, to, headers, body, opened))
        error_reply = by_name((key.decode("latin-1"), text_of(value)) for key, value in response.headers)
        try:
            codings = error_reply.get("content-encoding", "")
            if is_stream(response.status, error_reply):
                streamed = _Body(response, request, codings, is_over)
                return reply_of(response.status, error_reply, b"", streamed)
            content = await read_whole(response.aiter_stream(), codings)
        finally:
            if streamed is None:
                await response.aclose()
    except _ENDS as error:
        await _closed(opened)
        raise _in_httpx(error, request) from error
    except BaseException:
        await _closed(opened)
        raise
    finally:
        if streamed is None:
            await is_over()
    return reply_of(response.status, error_reply, content)


class _Body:
    """The body of a streamed reply over a connection of httpcore. A body that ended leaves its connection to later
    requests; one that is closed before its end takes its connection with it."""

    def __init__(
        self, response: httpcore.Response, request: httpx.Request, codings: str, on_end: Callable[[], Awaitable[None]]
    ) -> None:
        self._response, self._request, self._over = response, request, on_end
        self._unpacker = Unpacker(codings)
        self._parts = aiter(cast(AsyncIterable[bytes], response.stream))
        self._closed = False

    async def take(self) -> bytes | None:
        try:
            while not (piece := self._unpacker.next()):
                packed = await anext(self._parts, None)
                if packed is None:
                    self._unpacker.end()
                    await self.aclose()
                    return None
                self._unpacker.feed(packed)
            return piece
        except _ENDS as error:
            transport_error = _in_httpx(error, self._request)
            raise failure_of(transport_error) from error

    async def aclose(self) -> None:
        if not self._closed:
            self._closed = True
            try:
                await self._response.aclose()
            finally:
                await self._over()


async def _closed(opened: list[Any]) -> None:
    """Closes streams, since httpcore forgets a connection that is cancelled in its TLS handshake."""
    for stream in opened:
        await stream.aclose()


_ENDS = (
    httpcore.TimeoutException,
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.ProxyError,
    httpcore.UnsupportedProtocol,
)


def _request(request: httpx.Request, to: Address, headers: Headers, body: bytes, opened: list[Any]) -> httpcore.Request:
    url, (host, port) = request.url, to
    extensions: dict[str, Any] = {"timeout": request.extensions.get("timeout", {})}
    if url.scheme == "https":

        async def watch(step: str, about: Mapping[str, Any]) -> None:
            if step == "connection.connect_tcp.complete":
                opened.append(about["return_value"])

        extensions |= {"trace": watch, "sni_hostname": url.host}
    origin = httpcore.URL(scheme=url.raw_scheme, host=host.encode(), port=port, target=url.raw_path)
    return httpcore.Request(request.method, origin, headers=headers, content=body, extensions=extensions)


def _in_httpx(error: Exception, request: httpx.Request) -> httpx.TransportError:
    """The error of httpx with the same name as one of httpcore."""
    kind: type[httpx.TransportError] = getattr(httpx, type(error).__name__, httpx.TransportError)
    return kind(str(error), request=request)


NEVER_SENT = {
    "dns": "[Errno -2] Name or service not known",
    "untrusted": "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: certificate has expired (_ssl.c:1000)",
}
"""The failures before a connection stands, with the words of the client's error."""


def native(failure: Failure, request: httpx.Request, *, who: str, after_s: float) -> Exception:
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
    words_ = {"too_large": f"more than {BODY_MAX} bytes", "garbled": "an answer that is not HTTP as it should be"}
    message = f"{who}: {words_.get(failure.kind, failure.kind.replace('_', ' '))} after {duration(after_s, 1)}"
    return kinds.get(failure.kind, httpx.RemoteProtocolError)(message, request=request)


_CLOSED = re.compile("disconnected|closed connection")
"""Found in the messages of httpcore and h11 about an end that came too early. Their others are about bytes that are not
HTTP."""


def _kind(error: httpx.HTTPError) -> str:
    if isinstance(error, httpx.TimeoutException):
        return "timed_out"
    if isinstance(error, httpx.ConnectError):
        return _in_handshake(error)
    if isinstance(error, httpx.RemoteProtocolError):
        return "closed" if _CLOSED.search(str(error)) else "garbled"
    return "reset" if isinstance(error, httpx.NetworkError) else "garbled"


def _in_handshake(error: httpx.ConnectError) -> str:
    """The kind of failure behind httpx's ConnectError: no such name, no listener, or (under TLS) an end, a reset or a
    wrong certificate."""
    cause: BaseException | None = error
    while cause is not None:
        # Python 3.11.2 has the second for an end in the middle of it too.
        if isinstance(cause, ssl.SSLEOFError | ssl.SSLZeroReturnError | anyio.EndOfStream):
            return "closed"
        if isinstance(cause, socket.gaierror):  # DNS: as of a container that was killed
            return "dns"
        if isinstance(cause, ssl.SSLCertVerificationError):
            return "untrusted"
        if isinstance(cause, ssl.SSLError):
            return "garbled"
        if isinstance(cause, ConnectionResetError | BrokenPipeError | anyio.BrokenResourceError):
            return "reset"
        cause = cause.__cause__ or cause.__context__
    return "refused"
