"""The seam's ways in a virtual world: a clean lane hands a request to its application whole, a poisoned one carries bytes.

Where nothing may happen to the bytes, spelling them out at one end to read them again at the other is two thirds of what a call costs
and shows nothing. A call through toxics goes over a connection, byte by byte, as anywhere.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterable
from typing import Any, cast

import httpcore
import httpx

from chaoslab.wire import sending
from chaoslab.worlds.virtual.here import world
from chaoslab.worlds.virtual.loop import VirtualLoop
from chaoslab.worlds.virtual.network import TRIP_S
from chaoslab.worlds.virtual.serving import answered


class Ways:
    """What `wire/sending.py` offers over sockets."""

    _bytes = sending.Sockets()

    def kept(self, tls: ssl.SSLContext) -> sending.Way:  # noqa: ARG002 - nobody listens in
        return _Whole()

    def fresh(self, tls: ssl.SSLContext, request: httpx.Request, address: tuple[str, int]) -> sending.Way:
        return self._bytes.fresh(tls, request, address)


class _Whole:
    async def handle_async_request(self, request: httpcore.Request) -> httpcore.Response:
        here, url = world(), request.url
        host, port = url.host.decode(), int(url.port or 80)
        app = here.network.apps.get((here.network.address_of(host) or "", port))
        if app is None:
            raise httpcore.ConnectError(f"nobody listens at {host}:{port}")
        body = b"".join([part async for part in cast(AsyncIterable[bytes], request.stream)])
        loop, machine, name = cast(VirtualLoop, asyncio.get_running_loop()), here.machine, f"{host}:{port}"
        done: asyncio.Future[tuple[int, list[tuple[str, str]], bytes]] = loop.create_future()

        def work() -> None:
            outcome: Any
            try:
                outcome = answered(app, request.method, url.target, request.headers, body, name)
            except ConnectionResetError as error:
                outcome = httpcore.ReadError(str(error))
            except ConnectionError:
                outcome = httpcore.RemoteProtocolError("Server disconnected without sending a response.")
            machine.after(TRIP_S, loop.tell, _settle, done, outcome)

        machine.after(TRIP_S, lambda: machine.start(work, name=f"{name} at work"))
        status, headers, content = await done
        spelt = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
        return httpcore.Response(status, headers=spelt, content=content)

    async def aclose(self) -> None:
        """Nothing is open."""


def _settle(done: asyncio.Future[Any], outcome: Any) -> None:
    if done.done():  # whoever asked has given up
        return
    if isinstance(outcome, Exception):
        done.set_exception(outcome)
    else:
        done.set_result(outcome)
