"""The seam's transports in a virtual world: a clean lane passes a whole request to its application, a poisoned one
carries bytes.

If no fault can change the bytes, encoding and parsing them would be two thirds of a call's cost without any use. A call
through toxics goes over a connection, byte by byte.
"""

import asyncio
import ssl
from collections import deque
from typing import Any, cast

import httpx

from chaoslab.core.exchange import Failure, Reply
from chaoslab.wire import sending
from chaoslab.wire.http1 import unpack
from chaoslab.wire.sending import Address, Headers, by_name, failure_of, is_stream, reply_of, text_of
from chaoslab.worlds.virtual.machine.machine import Machine, Waiter
from chaoslab.worlds.virtual.network._app_answers import Answered, Broken, answer_request
from chaoslab.worlds.virtual.network._context import world
from chaoslab.worlds.virtual.network._loop import VirtualLoop, settle_future
from chaoslab.worlds.virtual.network.network import TRIP_S, WINDOW_BYTES

_Error = httpx.TransportError | Failure


class InProcessTransports:
    """The in-process counterpart of `wire/sending.py`."""

    # The same code as over sockets: httpcore finds the world's network below it.
    _bytes = sending.SocketFactory()

    def kept(self, tls: ssl.SSLContext) -> sending.Transport:  # noqa: ARG002 - there is no wire
        return _Whole()

    def standing(self, tls: ssl.SSLContext) -> sending.Transport:
        return self._bytes.standing(tls)

    def fresh(self, tls: ssl.SSLContext, request: httpx.Request, address: Address) -> sending.Transport:
        return self._bytes.fresh(tls, request, address)


class _Whole:
    async def ask(self, request: httpx.Request, to: Address, headers: Headers, body: bytes) -> Reply:
        virtual_world, (host, port) = world(), to
        address = virtual_world.network.address_of(host) or "", port
        app = virtual_world.network.apps.get(address)
        if app is None:
            raise httpx.ConnectError(f"nobody listens at {host}:{port}", request=request)
        loop, machine, name = cast(VirtualLoop, asyncio.get_running_loop()), virtual_world.machine, f"{host}:{port}"
        # A call takes some trips alone, so a loop of them has to be counted.
        machine.steps.requested(name)
        reply_future: asyncio.Future[Answered | _Stream] = loop.create_future()
        prompt = address in virtual_world.network.prompt
        stream = _Stream(loop, machine, name, reply_future, whole=prompt)

        def work() -> None:
            reply: Answered | None = None
            error: _Error | None = None
            try:
                reply = answer_request(stream, app, request.method, request.url.raw_path, headers, body, name)
            # The kinds of a failure that a stand-in asked for.
            except Broken as broken:
                error = _httpx_error_for(broken.kind, request, begun=stream.begun)
            if stream.begun:
                stream.over(error)
            else:
                machine.after(TRIP_S, loop.tell, settle_future, reply_future, reply, error)

        # A service that never waits needs no thread, which costs more than its answer.
        machine.after(TRIP_S, work if prompt else lambda: machine.serve(work, name=f"{name} at work"))
        try:
            reply = await reply_future
        except asyncio.CancelledError:
            stream.hang_up()
            raise
        if isinstance(reply, _Stream):
            return reply_of(stream.status, _to_headers(stream.fields), b"", stream)
        return _make_reply(reply)

    async def aclose(self) -> None:
        """Does nothing: there is no connection."""


def _make_reply(reply: Any) -> Reply:
    status, fields, content = reply
    headers = _to_headers(fields)
    return reply_of(status, headers, unpack(content, headers.get("content-encoding", "")))


def _to_headers(fields: list[tuple[str, str]]) -> dict[str, str]:
    # Latin-1 is what WSGI has; a value may be UTF-8 all the same.
    return by_name((key, value if value.isascii() else text_of(value.encode("latin-1"))) for key, value in fields)


class _Stream:
    """A body on its way from the thread of an application to a task that reads it, part by part.

    Parts that are sent at one moment travel together. The application waits while the reader has not taken what is on
    its way, up to the window of a connection. `whole`: it has no thread to wait in, so its answer comes whole.
    """

    def __init__(
        self, loop: VirtualLoop, machine: Machine, name: str, head: asyncio.Future[Any], *, whole: bool
    ) -> None:
        self._loop, self._machine, self._name, self._head, self._whole = loop, machine, name, head, whole
        self.begun = False
        self.status, self.fields = 0, list[tuple[str, str]]()
        self._sent: list[bytes] = []
        self._sent_at = -1.0
        self._here: deque[bytes] = deque()
        self._size = 0  # bytes on the way, or here and not yet taken
        self._end: tuple[_Error | None] | None = None
        self._reader: asyncio.Future[None] | None = None
        self._writer: Waiter | None = None
        self._closed = False

    # The application's side.

    def streams(self, status: int, fields: list[tuple[str, str]]) -> bool:
        if self._whole:
            return False
        headers = _to_headers(fields)
        # A packed stream would have to be unpacked part by part.
        if not is_stream(status, headers) or headers.get("content-encoding"):
            return False
        self.begun, self.status, self.fields = True, status, fields
        self._machine.after(TRIP_S, self._loop.tell, settle_future, self._head, self, None)
        return True

    def part(self, data: bytes) -> bool:
        if self._machine.now != self._sent_at:
            self._sent, self._sent_at = [], self._machine.now
            self._machine.after(TRIP_S, self._loop.tell, self._arrived, self._sent)
        self._sent.append(data)
        self._size += len(data)
        while self._size > WINDOW_BYTES and not self._closed:
            self._machine.steps.requested(self._name)  # or an application without an end would take for ever
            self._writer = Waiter(self._machine)
            self._writer.park(f"a slow reader of {self._name}")
        return not self._closed

    def over(self, error: _Error | None) -> None:
        """Ends the stream behind the parts that are on their way."""
        self._machine.after(TRIP_S, self._loop.tell, self._ended, error)

    # The reader's side.

    def _arrived(self, parts: list[bytes]) -> None:
        self._here.extend(parts)
        self._tell()

    def _ended(self, error: _Error | None) -> None:
        self._end = (error,)
        self._tell()

    def _tell(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    async def take(self) -> bytes | None:
        while not self._here:
            if self._end is not None:
                error = self._end[0]
                if error is None:
                    return None
                raise error if isinstance(error, Failure) else failure_of(error)
            self._reader = self._loop.create_future()
            await self._reader
        piece = self._here.popleft()
        self._size -= len(piece)
        if self._writer is not None and self._size <= WINDOW_BYTES:
            self._wake()
        return piece

    async def aclose(self) -> None:
        self.hang_up()

    def hang_up(self) -> None:
        """Stops reading; the application learns of it when it sends the next part."""
        if not self._closed:
            self._closed = True
            self._here.clear()
            self._wake()

    def _wake(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.wake()


def _httpx_error_for(kind: str, request: httpx.Request, *, begun: bool) -> _Error:
    """httpx's error for a failure of this kind, as over a socket; a `Failure` if httpx has none. `begun`: it comes in
    the middle of an answer."""
    closed = (
        "peer closed connection without sending complete message body (incomplete chunked read)"
        # The words of h11 and httpcore, since `sending` tells an early end from garbage by them.
        if begun
        else "Server disconnected without sending a response."
    )
    errors: dict[str, httpx.TransportError] = {
        "refused": httpx.ConnectError("All connection attempts failed", request=request),
        "reset": httpx.ReadError("", request=request),
        "closed": httpx.RemoteProtocolError(closed, request=request),
    }
    return errors.get(kind) or Failure(kind)
