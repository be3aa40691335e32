"""HTTP/1.1 for the API: h11 parses, an asyncio protocol carries."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from email.utils import formatdate
from http import HTTPStatus
from typing import cast

import h11

from chaoslab.wire.server.errors import BadTarget
from chaoslab.wire.server.rest import Request, Response

BODY_BYTES_MAX = 1024 * 1024
HEAD_BYTES_MAX = 1024 * 1024 + 4096
WHOLE_BYTES_MAX = 2048  # a longer body goes out in chunks, as Go's does
CONTINUE = b"100-continue"
Answer = Callable[[Request], Awaitable[Response]]


class Http(asyncio.Protocol):
    """One client's connection: its requests are answered one after the other."""

    def __init__(self, answer: Answer, connections: set[Http]) -> None:
        self._answer = answer
        self._connections = connections
        self._h11 = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_BYTES_MAX)
        self._head: h11.Request | None = None
        self._body = bytearray()
        self._task: asyncio.Task[None] | None = None
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is none by class
        self._connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self._connections.discard(self)

    def data_received(self, data: bytes) -> None:
        self._h11.receive_data(data)
        self._go_on()

    def eof_received(self) -> bool:
        self._h11.receive_data(b"")
        self._go_on()
        return True  # the answer to a request that is already here is still sent

    def abort(self) -> None:
        if self._task is not None and self._task is not asyncio.current_task():
            self._task.cancel()
        if self._transport is not None:
            self._transport.abort()

    def _go_on(self) -> None:
        """Read up to the end of a request and begin to answer it; the next waits in h11 until then."""
        if self._task is not None or self._transport is None or self._transport.is_closing():
            return
        try:
            while True:
                event = self._h11.next_event()
                if event is h11.NEED_DATA:
                    if self._h11.they_are_waiting_for_100_continue:
                        self._write(self._h11.send(h11.InformationalResponse(status_code=100, headers=[])))
                    return
                if isinstance(event, h11.Request):
                    if event.http_version not in (b"1.0", b"1.1"):
                        self._refuse(505, ": unsupported protocol version")
                        return
                    self._head, self._body = event, bytearray()
                elif isinstance(event, h11.Data):
                    self._body += event.data
                    if len(self._body) > BODY_BYTES_MAX:
                        self._refuse(413)
                        return
                elif isinstance(event, h11.EndOfMessage) and self._head is not None:
                    self._transport.pause_reading()
                    self._task = asyncio.get_running_loop().create_task(self._reply(self._head))
                    return
                else:  # closed by the client, or waiting for our own answer
                    self._transport.close()
                    return
        except h11.RemoteProtocolError as error:
            if error.error_status_hint == HTTPStatus.NOT_IMPLEMENTED:
                self._refuse(501, body="Unsupported transfer encoding")
            else:
                hostless = "mandatory Host" in str(error)
                self._refuse(error.error_status_hint, ": missing required Host header" if hostless else "")

    async def _reply(self, head: h11.Request) -> None:
        headers = dict(head.headers)
        request = Request(
            head.method.decode(),
            head.target.decode(),
            bytes(self._body),
            headers.get(b"user-agent", b"").decode("latin-1"),
        )
        try:
            if headers.get(b"expect", CONTINUE).lower() == CONTINUE:
                response = await self._answer(request)
            else:
                response = Response(417, headers={"Connection": "close"})
        except BadTarget:
            self._refuse(400)
            return
        except BaseException:
            self.abort()  # a client that waits for ever would hide the bug
            raise
        self._task = None
        if self._transport is None or self._transport.is_closing():
            return
        self._send(response, head_only=request.method == "HEAD")
        if self._h11.our_state is h11.MUST_CLOSE:
            self._transport.close()
            return
        self._h11.start_next_cycle()
        self._transport.resume_reading()
        self._go_on()

    def _refuse(self, status: int, more: str = "", *, body: str = "") -> None:
        """What came is no request to be answered: say so if that is still possible, and hang up."""
        assert self._transport is not None
        line = f"{status} {HTTPStatus(status).phrase}"
        if self._h11.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            head = f"HTTP/1.1 {line}{more}\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"
            self._write((head + (body or f"{line}{more}")).encode())
        self._transport.close()

    def _send(self, response: Response, *, head_only: bool = False) -> None:
        headers = [] if response.content_type is None else [("Content-Type", response.content_type)]
        headers += [*response.headers.items(), ("Date", formatdate(usegmt=True))]
        unsaid = response.status == HTTPStatus.NO_CONTENT or (head_only and not response.body)
        if len(response.body) <= WHOLE_BYTES_MAX and not unsaid and "Content-Length" not in response.headers:
            headers.append(("Content-Length", str(len(response.body))))
        reason = HTTPStatus(response.status).phrase.encode()
        out = self._h11.send(h11.Response(status_code=response.status, headers=headers, reason=reason)) or b""
        if head_only:
            out = out.replace(b"Transfer-Encoding: chunked\r\n", b"")  # of a body that is not there
        elif response.body:
            out += self._h11.send(h11.Data(data=response.body)) or b""
        self._write(out + (self._h11.send(h11.EndOfMessage()) or b""))

    def _write(self, data: bytes | None) -> None:
        if data and self._transport is not None:
            self._transport.write(data)
