"""HTTP/1.1 for the API, by h11: one asyncio protocol for each client's connection."""

import asyncio
from collections.abc import Callable, Coroutine
from email.utils import formatdate
from typing import Any, cast

import h11

from chaoslab.base.phrases import get_status_phrase
from chaoslab.wire.server.rest import RestRequest, RestResponse

# The real server takes bodies of any size; here memory is bounded.
BODY_BYTES_MAX = 1024 * 1024
DRAIN_BYTES_MAX = 64 * 1024 * 1024
# The bytes and seconds for which a refused request is still read. A socket that is closed with unread data resets,
# which may discard the refusal.
DRAIN_S = 5.0
Answer = Callable[[RestRequest], Coroutine[Any, Any, RestResponse]]


class Connection(asyncio.Protocol):
    """One client's connection. Its requests are answered one after the other."""

    _transport: asyncio.Transport

    def __init__(self, answer: Answer, connections: "set[Connection]") -> None:
        self._answer = answer
        self._connections = connections
        self._http = h11.Connection(h11.SERVER)
        self._head: h11.Request | None = None
        self._body = bytearray()
        self._task: asyncio.Task[None] | None = None
        self._draining: asyncio.TimerHandle | None = None
        self._drained = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is of another class
        self._connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self._connections.discard(self)
        if self._draining is not None:
            self._draining.cancel()

    def data_received(self, data: bytes) -> None:
        if self._draining is not None:
            self._drained += len(data)
            if self._drained > DRAIN_BYTES_MAX:
                self._transport.close()
            return
        self._feed_parser(data)

    def eof_received(self) -> bool:
        if self._draining is not None:
            self._transport.close()
        else:
            self._feed_parser(b"")
        return True  # a request that is already here is still answered

    def abort(self) -> None:
        if self._task is not None and self._task is not asyncio.current_task():
            self._task.cancel()
        self._transport.abort()

    def _feed_parser(self, data: bytes) -> None:
        self._http.receive_data(data)
        if self._task is None:
            self._start_next_answer()

    def _start_next_answer(self) -> None:
        """Begins the answer to the next request, if it is all there."""
        try:
            request = self._parse_next_request()
        except h11.RemoteProtocolError as error:
            self._refuse_and_close(error.error_status_hint)
            return
        if request is not None:
            # No pipelining into memory: further requests wait in the socket until this one is answered.
            self._transport.pause_reading()
            self._task = asyncio.get_running_loop().create_task(self._answer_request(request))

    def _parse_next_request(self) -> RestRequest | None:
        # One call of h11 gives one event, and a body has several.
        while True:
            event = self._http.next_event()
            if event is h11.NEED_DATA:
                # Some clients wait for this word before they send a body.
                if self._http.they_are_waiting_for_100_continue:
                    self._send_event(h11.InformationalResponse(status_code=100, headers=[], reason=b"Continue"))
                return None
            if isinstance(event, h11.Request):
                self._head, self._body = event, bytearray()
            elif isinstance(event, h11.Data):
                self._body += event.data
                if len(self._body) > BODY_BYTES_MAX:
                    raise h11.RemoteProtocolError("the body is too long", error_status_hint=413)
            elif isinstance(event, h11.EndOfMessage) and self._head is not None:
                return _make_request(self._head, bytes(self._body))
            else:  # closed by the client
                self._transport.close()
                return None

    async def _answer_request(self, request: RestRequest) -> None:
        try:
            response = await self._answer(request)
        except BaseException:
            self.abort()  # a client that waits forever would hide the bug
            raise
        self._task = None
        if self._transport.is_closing():
            return
        # An answer to HEAD has the length of the body that is left out.
        self._send_response(response, head_only=request.method == "HEAD")
        # The client asked for it, or speaks HTTP/1.0.
        if self._http.our_state is h11.MUST_CLOSE:
            self._transport.close()
            return
        self._http.start_next_cycle()
        self._transport.resume_reading()
        # The next request may be in h11's buffer already, and no data would come to wake it.
        self._start_next_answer()

    def _send_response(self, response: RestResponse, *, head_only: bool = False) -> None:
        headers = [*response.headers.items(), ("Date", formatdate(usegmt=True))]
        # 204 has no length (RFC 9110, section 8.6).
        if response.status != 204:
            headers.append(("Content-Length", str(len(response.body))))
        reason = get_status_phrase(response.status).encode()
        self._send_event(h11.Response(status_code=response.status, headers=headers, reason=reason))
        if response.body and not head_only:
            self._send_event(h11.Data(data=response.body))
        self._send_event(h11.EndOfMessage())

    def _refuse_and_close(self, status: int) -> None:
        """Refuses what is no request, and hangs up once the client has read it."""
        # Only while no part of an answer is out.
        if self._http.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            message = f"{status} {get_status_phrase(status)}".encode()
            headers = {"Content-Type": "text/plain; charset=utf-8", "Connection": "close"}
            self._send_response(RestResponse(status, message, headers))
        # The second is True once the client has ended its direction: nothing is left to be drained.
        if self._transport.is_closing() or self._http.trailing_data[1]:
            self._transport.close()
        else:
            # The write end alone: see `DRAIN_S`.
            self._transport.write_eof()
            self._draining = asyncio.get_running_loop().call_later(DRAIN_S, self._transport.close)

    def _send_event(self, event: h11.Event) -> None:
        if data := self._http.send(event):
            self._transport.write(data)


def _make_request(head: h11.Request, body: bytes) -> RestRequest:
    fields = [(name, value.decode("latin-1")) for name, value in head.headers]
    # Reversed, so that the first of a repeated field counts.
    first = dict(reversed(fields))
    return RestRequest(
        head.method.decode(),
        head.target.decode(),
        body,
        user_agents=tuple(value for name, value in fields if name == b"user-agent"),
        # All origins together: a page must not get by with a second one.
        host=first.get(b"host"),
        origin=", ".join(value for name, value in fields if name == b"origin") or None,
    )
