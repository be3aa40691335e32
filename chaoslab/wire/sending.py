"""One HTTP request over one transport, and every way in which it can end, by the names that exchanges have for them."""

from __future__ import annotations

import asyncio
import json
import re
import ssl
from collections.abc import Mapping
from typing import Any

import anyio
import httpx

from chaoslab.exchange import Failure, Reply
from chaoslab.wire.body import ACCEPTED, BODY_MAX, whole


async def over(transport: httpx.AsyncBaseTransport, request: httpx.Request, *, within_s: float) -> Reply:
    """The whole reply, body included.

    Raises:
        Failure: there was none, or it took longer than `within_s`.
    """
    opened: list[Any] = []

    async def watch(step: str, about: Mapping[str, Any]) -> None:
        if step == "connection.connect_tcp.complete":
            opened.append(about["return_value"])

    request.extensions = {**request.extensions, "trace": watch}
    request.headers["accept-encoding"] = ACCEPTED
    try:
        async with asyncio.timeout(within_s):
            try:
                response = await transport.handle_async_request(request)
                try:
                    body = await whole(response)
                finally:
                    await response.aclose()
            except BaseException:
                for stream in opened:  # httpcore forgets a connection that is cancelled in its TLS handshake
                    await stream.aclose()
                raise
    except TimeoutError as error:
        raise Failure("timed_out") from error
    except httpx.HTTPError as error:
        raise Failure(_kind(error), native=error) from error
    headers = {
        k: v
        for k, v in response.headers.items()
        if k not in ("content-encoding", "content-length", "transfer-encoding")
    }
    return Reply(response.status_code, headers, body)


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


def to(request: httpx.Request, address: tuple[str, int]) -> httpx.Request:
    """The same request to another address; Host, SNI and the certificate's name stay the target's own."""
    host, port = address
    extensions = {**request.extensions, "sni_hostname": request.url.host}
    return httpx.Request(
        request.method,
        request.url.copy_with(host=host, port=port),
        headers=request.headers,
        content=request.content,
        extensions=extensions,
    )


def with_json(request: httpx.Request, value: Any) -> httpx.Request:
    """The request with another JSON body."""
    headers = {k: v for k, v in request.headers.items() if k != "content-length"}
    return httpx.Request(
        request.method, request.url, headers=headers, content=json.dumps(value).encode(), extensions=request.extensions
    )


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
