"""The seam's transports in a virtual world: a clean lane passes a whole request to its application, a poisoned one
carries bytes.

If no fault can change the bytes, encoding and parsing them would be two thirds of a call's cost without any use. A call
through toxics goes over a connection, byte by byte.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import cast

import httpx

from chaoslab.core.exchange import Failure, Reply
from chaoslab.wire import sending
from chaoslab.wire.body import unpacked
from chaoslab.wire.sending import Address, Headers, by_name, reply_of, text_of
from chaoslab.worlds.virtual.context import world
from chaoslab.worlds.virtual.loop import VirtualLoop, settle
from chaoslab.worlds.virtual.network import TRIP_S
from chaoslab.worlds.virtual.serving import Answered, Broken, answered


class InProcessTransports:
    """The in-process counterpart of `wire/sending.py`."""

    _bytes = sending.Sockets()

    def kept(self, tls: ssl.SSLContext) -> sending.Transport:  # noqa: ARG002 - there is no wire
        return _Whole()

    def fresh(self, tls: ssl.SSLContext, request: httpx.Request, address: Address) -> sending.Transport:
        return self._bytes.fresh(tls, request, address)


class _Whole:
    async def ask(self, request: httpx.Request, to: Address, headers: Headers, body: bytes) -> Reply:
        here, (host, port) = world(), to
        app = here.network.apps.get((here.network.address_of(host) or "", port))
        if app is None:
            raise httpx.ConnectError(f"nobody listens at {host}:{port}", request=request)
        loop, machine, name = cast(VirtualLoop, asyncio.get_running_loop()), here.machine, f"{host}:{port}"
        machine.steps.requested(name)
        done: asyncio.Future[Answered] = loop.create_future()

        def work() -> None:
            reply: Answered | None = None
            error: Exception | None = None
            try:
                reply = answered(app, request.method, request.url.raw_path, headers, body, name)
            except Broken as broken:
                error = _in_httpx(broken.kind, request)
            machine.after(TRIP_S, loop.tell, settle, done, reply, error)

        machine.after(TRIP_S, lambda: machine.start(work, name=f"{name} at work"))
        status, fields, content = await done
        said = by_name((key, value if value.isascii() else text_of(value.encode("latin-1"))) for key, value in fields)
        return reply_of(status, said, unpacked(content, said.get("content-encoding", "")))

    async def aclose(self) -> None:
        """Does nothing: there is no connection."""


def _in_httpx(kind: str, request: httpx.Request) -> Exception:
    """httpx's error for a failure of this kind, as over a socket; a `Failure` if httpx has none."""
    known: dict[str, httpx.TransportError] = {
        "refused": httpx.ConnectError("All connection attempts failed", request=request),
        "reset": httpx.ReadError("", request=request),
        "closed": httpx.RemoteProtocolError("Server disconnected without sending a response.", request=request),
    }
    return known.get(kind) or Failure(kind)
