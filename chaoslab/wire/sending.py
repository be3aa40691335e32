"""One HTTP request over one way, and every way in which it can end, by the names that exchanges have for them.

Ways are httpcore's, below httpx, since the client of whoever calls has done all that httpx does once already.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Mapping
from typing import Any, Protocol

import anyio
import httpcore
import httpx

from chaoslab.exchange import Failure, Reply
from chaoslab.wire.body import ACCEPTED, BODY_MAX, whole


class Way(Protocol):
    """Takes requests to where they go."""

    async def handle_async_request(self, request: httpcore.Request) -> httpcore.Response: ...
    async def aclose(self) -> None: ...


class Ways(Protocol):
    """How a seam reaches its targets."""

    def kept(self, tls: ssl.SSLContext) -> Way:
        """Connections that are used again."""

    def fresh(self, tls: ssl.SSLContext, request: httpx.Request, address: tuple[str, int]) -> Way:
        """A connection for this request alone."""


class Sockets:
    """Over TCP, with connections kept as httpx keeps them."""

    def kept(self, tls: ssl.SSLContext) -> Way:
        return httpcore.AsyncConnectionPool(
            tls, max_connections=100, max_keepalive_connections=20, keepalive_expiry=5.0
        )

    def fresh(self, tls: ssl.SSLContext, request: httpx.Request, address: tuple[str, int]) -> Way:
        host, port = address
        return httpcore.AsyncHTTPConnection(httpcore.Origin(request.url.raw_scheme, host.encode(), port), tls)


async def over(
    way: Way,
    request: httpx.Request,
    *,
    within_s: float,
    to: tuple[str, int] | None = None,
    body: bytes | None = None,
) -> Reply:
    """The whole reply, body included. `to`: another address, while Host, SNI and the certificate's name stay the target's own;
    `body`: instead of the request's.

    Raises:
        Failure: there was none, or it took longer than `within_s`.
    """
    opened: list[Any] = []
    asked = _request(request, to, body, opened)
    try:
        async with asyncio.timeout(within_s):
            try:
                response = await way.handle_async_request(asked)
                headers = _headers(response.headers)
                try:
                    content = await whole(response.aiter_stream(), headers.get("content-encoding", ""))
                finally:
                    await response.aclose()
            except BaseException:
                for stream in opened:  # httpcore forgets a connection that is cancelled in its TLS handshake
                    await stream.aclose()
                raise
    except TimeoutError as error:
        raise Failure("timed_out") from error
    except _ENDS as error:
        known = _in_httpx(error, request)
        raise Failure(_kind(known), native=known) from known
    for name in ("content-encoding", "content-length", "transfer-encoding"):
        headers.pop(name, None)
    return Reply(response.status, headers, content)


_ENDS = (
    httpcore.TimeoutException,
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.ProxyError,
    httpcore.UnsupportedProtocol,
)


_PACKED = (b"accept-encoding", ACCEPTED.encode())


def _request(
    request: httpx.Request, to: tuple[str, int] | None, body: bytes | None, opened: list[Any]
) -> httpcore.Request:
    url = request.url
    host, port = (url.raw_host, url.port) if to is None else (to[0].encode(), to[1])
    headers = [_PACKED if pair[0].lower() == b"accept-encoding" else pair for pair in request.headers.raw]
    if body is not None:
        headers = [(name, value) for name, value in headers if name.lower() != b"content-length"]
        headers.append((b"content-length", str(len(body)).encode()))
    extensions: dict[str, Any] = {"timeout": request.extensions.get("timeout", {})}
    if url.scheme == "https":

        async def watch(step: str, about: Mapping[str, Any]) -> None:
            if step == "connection.connect_tcp.complete":
                opened.append(about["return_value"])

        extensions |= {"trace": watch, "sni_hostname": url.host}
    return httpcore.Request(
        request.method,
        httpcore.URL(scheme=url.raw_scheme, host=host, port=port, target=url.raw_path),
        headers=headers,
        content=request.content if body is None else body,
        extensions=extensions,
    )


def _headers(raw: list[tuple[bytes, bytes]]) -> dict[str, str]:
    """By name in lower case; what was said several times is one list."""
    found: dict[str, str] = {}
    for key, value in raw:
        name = key.decode("latin-1").lower()
        try:
            text = value.decode()
        except UnicodeDecodeError:
            text = value.decode("latin-1")
        found[name] = f"{found[name]}, {text}" if name in found else text
    return found


def _in_httpx(error: Exception, request: httpx.Request) -> httpx.TransportError:
    """What httpx makes of an error of httpcore: the same by name."""
    kind: type[httpx.TransportError] = getattr(httpx, type(error).__name__, httpx.TransportError)
    known = kind(str(error), request=request)
    known.__cause__ = error
    return known


def native(failure: Failure, request: httpx.Request, *, who: str, after_s: float) -> Exception:
    """What the client itself raises in such a case."""
    if failure.native is not None:
        return failure.native
    kinds: dict[str, type[httpx.TransportError]] = {
        "timed_out": httpx.ReadTimeout,
        "refused": httpx.ConnectError,
        "reset": httpx.ReadError,
    }
    what = {"too_large": f"more than {BODY_MAX} bytes", "garbled": "an answer that is not HTTP as it should be"}
    said = f"{who}: {what.get(failure.kind, failure.kind.replace('_', ' '))} after {after_s:.1f} s"
    return kinds.get(failure.kind, httpx.RemoteProtocolError)(said, request=request)


_CLOSED = re.compile("disconnected|closed connection")
"""In what httpcore and h11 say of an end that came too early; all else that they say is about bytes that are not HTTP."""


def _kind(error: httpx.HTTPError) -> str:
    if isinstance(error, httpx.TimeoutException):
        return "timed_out"
    if isinstance(error, httpx.ConnectError):
        return _in_handshake(error)
    if isinstance(error, httpx.RemoteProtocolError):
        return "closed" if _CLOSED.search(str(error)) else "garbled"
    return "reset" if isinstance(error, httpx.NetworkError) else "garbled"


def _in_handshake(error: httpx.ConnectError) -> str:
    """What httpx calls one name: nobody listens, or (under TLS) an end, a reset or a wrong certificate once connected."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLEOFError | anyio.EndOfStream):
            return "closed"
        if isinstance(cause, ssl.SSLError):
            return "garbled"
        if isinstance(cause, ConnectionResetError | BrokenPipeError | anyio.BrokenResourceError):
            return "reset"
        cause = cause.__cause__ or cause.__context__
    return "refused"
