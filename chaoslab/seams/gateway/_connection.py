"""A client's connection at the gateway, and each exchange on it: what its service is asked, what its client takes."""

import asyncio
import errno
import os
import socket
import struct
from collections import deque
from contextlib import suppress
from typing import Any

from aiohttp import StreamReader, web
from aiohttp.web_protocol import RequestHandler, RequestPayloadError

from chaoslab.base.phrases import get_status_phrase
from chaoslab.core.exchange import Failure
from chaoslab.core.stream import BodyParts
from chaoslab.seams.gateway._rewriting import AddressRewriter
from chaoslab.seams.gateway._upstream import (
    FIELDS_MAX,
    GatewayAnswer,
    OwnAnswer,
    Switched,
    Take,
    Upstream,
    get_first_line,
)
from chaoslab.seams.gateway.routes import GatewayRoute, find_proxy
from chaoslab.seams.gateway.shared import HOP, Gateway
from chaoslab.seams.services.line import ClientEnd, StreamView
from chaoslab.seams.services.messages import UPGRADED, Fields, HttpRequest, has_body_in_parts, make_message_splitter
from chaoslab.seams.services.seam import ServiceAttempt
from chaoslab.seams.services.wire_bytes import WireBytes
from chaoslab.wire.http1 import BODILESS, BODY_MAX, HEAD_MAX, HOP_BY_HOP, READ_MAX, render_chunk, render_head

# The value of SO_LINGER with which a connection ends in a reset.
AT_ONCE = struct.pack("ii", 1, 0)
# A body of at most so many bytes is waited for so long before its head is passed on, in seconds.
SMALL_MAX, FIRST_S = 1 << 16, 0.05
# The time from the end of a client's own direction until it has left, in seconds: some end theirs with the request, and
# still take the answer.
LEFT_S = 0.25
# The exchanges under way at once from which on requests to this machine, or a proxy, bear the gateway's mark: one that
# has passed through many gateways, or one many times, may never end.
MANY = 16
_CLOSES = 0x8
"""The first half byte of the frame that ends a WebSocket."""


class SentAnswer:
    """The end of an exchange whose answer was sent already, in the form of an answer of aiohttp's."""

    def __init__(self, *, keep_alive: bool) -> None:
        self.keep_alive = keep_alive

    async def prepare(self, request: web.BaseRequest) -> None: ...

    async def write_eof(self) -> None: ...


class Connection(RequestHandler):
    """A client's connection, and those to the services that it asks. `left`: it has ended its own direction."""

    __slots__ = ("exchange", "left", "upstreams")

    def __init__(self, server: web.Server) -> None:
        # Bodies as they come, on 256 KiB at a time: with less, 2 MB up and down stopped and started the reading 16
        # times.
        super().__init__(
            server,
            loop=asyncio.get_running_loop(),
            auto_decompress=False,
            read_bufsize=READ_MAX,
            max_line_size=HEAD_MAX,
            max_field_size=HEAD_MAX,
            max_headers=FIELDS_MAX,
            access_log=None,  # type: ignore[arg-type]  # which means none
        )
        self.upstreams: dict[GatewayRoute, Upstream] = {}
        self.exchange: Exchange | None = None
        self.left = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        assert isinstance(transport, asyncio.WriteTransport)
        secure = self.ssl_context is not None  # whose transport takes a limit of 0 for one that is always reached
        # what was sent is with the system, so what was taken is known
        transport.set_write_buffer_limits(int(secure), 0)

    def connection_lost(self, exc: BaseException | None) -> None:
        super().connection_lost(exc)
        if self.exchange is not None:
            self.exchange.handle_disconnect()
        else:
            self.close_upstreams()

    def close_upstreams(self) -> None:
        for upstream in self.upstreams.values():
            upstream.close()

    def data_received(self, data: bytes) -> None:
        """Tells who reads a body that it is no HTTP any more."""
        super().data_received(data)
        # aiohttp keeps a broken request as a message with its error, and leaves the reader of the body before it
        # waiting.
        if self._messages and (error := getattr(self._messages[-1][0], "exc", None)) is not None:
            request = self._current_request
            bodies = [body for _, body in self._messages][:-1] + ([request.content] if request is not None else [])
            for body in bodies:
                if not body.is_eof():
                    body.set_exception(RequestPayloadError(str(error)))

    def eof_received(self) -> bool | None:  # type: ignore[override]
        """Keeps the connection for the answers to what was asked."""
        if self.ssl_context is not None:  # TLS knows no half of a connection
            return None
        request, waiter = self._current_request, self._waiter
        # Idle: no request was ever begun, or the handler waits for the next one.
        idle = not self._request_count if waiter is None else not waiter.done()
        # With a body on its way there is nothing to answer yet, so the client has left.
        if idle or self._payload_parser is not None or (request is not None and not request.content.is_eof()):
            return None
        self.left = True
        if self.exchange is not None:
            self.exchange.handle_half_close()
        return True

    def handle_error(
        self, _: web.BaseRequest, status: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> web.StreamResponse:
        """Answers what is no HTTP, in one line. Any other error is the lab's own."""
        if message is None:
            # Its log has the traceback; the client gets the end of its connection and no words of the lab's.
            self.logger.exception("the gateway failed", exc_info=exc)
            self.force_close()
        else:
            self.send_gateway_answer(status, f"this is no HTTP/1.1: {get_first_line(message)}")
        return SentAnswer(keep_alive=False)  # type: ignore[return-value]  # it has all that is asked of one

    def log_exception(self, *args: Any, **kwargs: Any) -> None:
        """Tells of what fails while there is a client. One may leave while the rest of its upload is thrown away, or
        send what is no HTTP there, of which it has been told."""
        if self.transport is not None and not isinstance(kwargs.get("exc_info"), RequestPayloadError):
            super().log_exception(*args, **kwargs)

    def reset_connection(self) -> None:
        """Ends it without a word, as a process that dies does: its client reads a reset."""
        if self.transport is not None:
            # Linger 0: the kernel sends RST in place of FIN, as when a process dies.
            self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
            self.transport.abort()

    def send_gateway_answer(self, status: int, content: str | dict[str, Any]) -> SentAnswer:
        """Answers with the gateway's own words, or JSON, and nothing comes after."""
        if self.transport is not None:
            self.transport.write(OwnAnswer(status, content).to_bytes())
        return SentAnswer(keep_alive=False)

    @property
    def has_next_request(self) -> bool:
        """True if a further request has come already."""
        return bool(self._messages)


class Exchange:
    """One request under way: the line of its attempt. `body`: that of the request, or its beginning, with `rest`;
    `length`: of all of it in bytes, or CHUNKED."""

    # Of the class, since most exchanges change few of them.
    body = b""
    rest: Take | None = None
    _asking: asyncio.Task[GatewayAnswer] | None = None
    """The request that is passed on as it comes."""
    _upstream: Upstream | None = None
    _answer: GatewayAnswer | None = None
    _leaving: asyncio.TimerHandle | None = None
    _lapsed = _given_up = False
    _left: asyncio.Event | None = None
    """Is set when the client has left, if anybody waits for it."""
    _told: tuple[int, Fields, list[bytes]] | None = None
    """The answer that the client gets, as far as it is kept."""
    _kept = _size = _head = 0
    """The bytes of the body that are kept, of all that was sent, and of the head."""
    _wire: WireBytes | None = None
    _bodies: deque[tuple[int, int]]
    """The places of the body's parts among the bytes that go over `_wire`, each up to its end."""
    _given = _tail = 0
    """The bytes given to `_wire`, and those that follow each part of the body."""
    _stream: StreamView | None = None
    _half_closed = _gone = _said_goodbye = False
    """The client has ended its own direction; takes nothing any more; has ended its WebSocket as it should."""

    trip_s = 0.0
    user_source_line = ""
    _attempt: ServiceAttempt

    def __init__(
        self,
        gateway: Gateway,
        line: Connection,
        request: web.BaseRequest,
        route: GatewayRoute,
        rewriting: AddressRewriter,
        length: int,
    ) -> None:
        self._gateway, self._line, self._route, self._rewriting = gateway, line, route, rewriting
        self._length = length
        self._old, self._closes = request.version < (1, 1), not request.keep_alive

    async def serve_attempt(self, attempt: ServiceAttempt) -> bool:
        """Answers the request; False if the connection is over."""
        self._attempt, self._line.exchange = attempt, self
        # The client may have left while its body was read, before there was an attempt to tell.
        if self._line.transport is None:
            self.handle_disconnect()
        elif self._line.left:
            self.handle_half_close()
        failure_kind: str | None = None
        goes_on = False
        try:
            goes_on = await self._answer_request(attempt)
        except Failure as failure:
            failure_kind = failure.kind
        except OSError:
            failure_kind = "left"
        # A fault of silence: the line stays open until the client gives up, or nobody could wait any longer.
        # Not for one that gave up, or that its trial's end took away: nobody is left to wait for.
        if failure_kind == "timed_out" and not self._lapsed and not self._gone:
            await self.wait_unless_client_left(self._gateway.seam.timeout_s)
        self._gateway.handle_exchange_end(
            attempt, self._build_client_ending("left" if failure_kind == "timed_out" else failure_kind)
        )
        if self._leaving is not None:
            self._leaving.cancel()
        if self._upstream is not None:
            # `clean` alone allows a kept connection: what is left of an answer would be read as the next one.
            clean = self._answer is not None and self._answer.clean
            goes_on = await self._upstream.finish_exchange(clean=clean) and goes_on
        if failure_kind == "reset":
            self._line.reset_connection()
        elif failure_kind is not None:
            self._line.force_close()
        self._answer = self._asking = None
        del self._attempt  # circles would wait for the collector, which costs a tenth of a request
        return goes_on

    async def _answer_request(self, attempt: ServiceAttempt) -> bool:
        ready: bytes | None = None
        # With `rest` the body is too large to be read whole, so no story could be told on it.
        if attempt.hit and self.rest is None:
            started, parts = await attempt.produce_reply()
            # The status line of WSGI: three digits, and a reason that is not passed on.
            status, self._wire = int(started[0][0][:3]), attempt.make_fault_wire(self._send_wire_piece_to_client)
            if self._wire is not None:
                self._bodies = deque()
        else:
            if attempt.hit:
                size = f"{BODY_MAX >> 20} MiB"
                self._gateway.warn_once(
                    f"{attempt.name} {attempt.request_label}: its body is over {size}, so no fault hits it"
                )
            parts = answer = await self.request_service_answer(attempt.request)
            started, status = [(str(answer.status), answer.fields)], answer.status
            wait = answer.measured or attempt.message is not None
            ready = await answer.read_first_part(attempt.make_part_receiver(started), wait=wait)
        upstream_answer = self._answer
        # The service's own words only for its own status: a story may have changed that.
        reason = (
            upstream_answer.reason
            if upstream_answer is not None and upstream_answer.status == status
            else get_status_phrase(status, "")
        )
        send = self._pass_websocket if status == UPGRADED else self._send_answer
        return await send(status, started[0][1], reason, ready, parts)

    async def _pass_websocket(
        self, status: int, fields: Fields, reason: str, ready: bytes | None, parts: BodyParts
    ) -> bool:
        """Passes on what both sides of a WebSocket say, until one of them ends it."""
        assert self._upstream is not None
        service, stream = self._upstream.protocol, Switched(self._line).stream
        assert service is not None

        async def copy_to_service() -> None:
            # OSError: the client has gone, which the other direction notices too.
            with suppress(OSError):
                while piece := await stream.readany():
                    # A WebSocket that says goodbye ends in order, whoever closes the connection first.
                    self._said_goodbye = self._said_goodbye or piece[0] & 0xF == _CLOSES
                    if service.transport is None:
                        return
                    service.transport.write(piece)
                    await service._drain_helper()
            service.close()

        asking = asyncio.ensure_future(copy_to_service())
        try:
            # `and False`: after a WebSocket no HTTP comes on this connection.
            return await self._send_answer(status, fields, reason, ready or b"", parts) and False
        finally:
            asking.cancel()
            self._upstream.close()
            self._line.force_close()

    async def _send_answer(
        self, status: int, answer_fields: Fields, reason: str, ready: bytes | None, parts: BodyParts
    ) -> bool:
        """Sends an answer; True if the connection may be used again. `ready`: the beginning of its body; None: the head
        waits for the first part. Raises Failure: the answer breaks off. OSError: the client has gone."""
        method, upgraded = self._attempt.request.method, status == UPGRADED
        if ready is None:
            ready = await parts.read_part() or b""
        fields, closes, measured = list[tuple[str, str]](), self._closes, False
        for field in answer_fields:
            name = field[0].lower()
            # The seam says so where the next connection is to be refused.
            closes = closes or (name == "connection" and field[1] == "close")
            measured = measured or name == "content-length"
            # Fields of one connection stay on it; of an upgrade they are what is agreed on.
            if upgraded or name not in HOP_BY_HOP:
                fields.append(field)
        bodiless = method == "HEAD" or status in BODILESS
        # HTTP/1.0 knows no chunks, so the end of the connection has to mark the end of the body.
        chunked = not measured and not bodiless and not self._old and not upgraded
        self._tail = len(b"\r\n") if chunked else 0
        if chunked:
            fields.append(("Transfer-Encoding", "chunked"))
        elif not measured and not bodiless:
            closes = True
        if closes and not upgraded:
            fields.append(("Connection", "close"))
        head = render_head(f"HTTP/1.1 {status} {reason}", self._rewriting.rewrite_headers(fields))
        self._head = len(head)
        self._told = status, answer_fields, []
        # A stream is seen part by part: its first and last byte, and its longest silence.
        if upgraded or has_body_in_parts(answer_fields):
            self._stream = StreamView(self._attempt.began_s, make_message_splitter(status, answer_fields))
        write = self._send_to_client if self._wire is None else self._write_to_fault_wire
        if bodiless:
            await write(head, b"")
            # Read to the end all the same: the seam notes effects as it takes the parts of an answer.
            while await parts.read_part() is not None:
                pass
            return not closes
        await write(head + (render_chunk(ready) if chunked and ready else ready), ready)
        while (piece := await parts.read_part()) is not None:
            if piece:
                await write(render_chunk(piece) if chunked else piece, piece)
        if chunked:
            await write(b"0\r\n\r\n", b"")
        # No length tells the reader of the end here, so the end of the connection goes over the wire as well.
        elif self._wire is not None and (upgraded or not measured):
            await self._wire.end_connection()
        return not closes

    async def _write_to_fault_wire(self, data: bytes, body: bytes) -> None:
        """Sends bytes over the wire of the faults; `body` of them is the body's."""
        assert self._wire is not None
        self._given += len(data)
        if body:
            # The chunk's line end behind the part is not of the body.
            end = self._given - self._tail
            self._bodies.append((end - len(body), end))
        await self._wire.send_through_faults(data)

    async def _send_wire_piece_to_client(self, piece: bytes) -> None:
        """Sends a piece that came over the wire."""
        at, body = self._size, b""
        # The wire cuts anywhere, so each piece is laid over the places of the body's parts.
        while self._bodies and self._bodies[0][0] < at + len(piece):
            begin, end = self._bodies[0]
            body += piece[max(0, begin - at) : end - at]
            if end > at + len(piece):
                break
            self._bodies.popleft()
        await self._send_to_client(piece, body)

    async def _send_to_client(self, data: bytes, body: bytes) -> None:
        line = self._line.transport
        # As the system would have it, so that one kind of error means a client that has gone.
        if line is None or line.is_closing():
            self._gone = True
            raise ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET))
        line.write(data)
        try:
            await self._line._drain_helper()
            if self._half_closed:  # the loop reads no more from it, so it does not notice a reset
                error = line.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                if error:
                    raise ConnectionResetError(error, os.strerror(error))
        except OSError:
            self._gone = True
            raise
        self._size += len(data)
        assert self._told is not None
        if self._kept < self._attempt.reads and self._told[0] != UPGRADED:
            self._kept += len(body)
            self._told[2].append(body)
        if self._stream is not None and body:
            self._stream.note_part(body, self._attempt.clock.monotonic())

    def _build_client_ending(self, error: str | None) -> ClientEnd:
        """The end of the exchange on the client's side."""
        answer = None
        # Only if the whole head went out: of less the client has no answer.
        if self._told is not None and self._size >= self._head > 0:
            status, fields, parts = self._told
            answer = status, fields, b"".join(parts)
        # A client that says goodbye and then goes has not given up.
        if error == "left" and self._said_goodbye:
            error = None
        waited, streamed = error == "left", None
        if self._stream is not None:
            streamed = self._stream.build_stream_summary(error, self._attempt.clock.monotonic(), waited=waited)
        return ClientEnd(error, answer, self._size, waited, streamed)

    # The client's going.

    def handle_half_close(self) -> None:
        """Takes the end of the client's own direction. It has left unless it takes its answer at once."""
        self._half_closed = True
        if self._upstream is not None:
            self._upstream.shut_down_sending()
        if self._leaving is None:
            self._attempt.note_client_timeout()
            self._leaving = asyncio.get_running_loop().call_later(LEFT_S, self._end_abandoned_attempt)

    def handle_disconnect(self) -> None:
        """Takes the end of the client's connection."""
        self._gone = True
        if self._upstream is not None:
            self._upstream.shut_down_sending()
        self._end_abandoned_attempt()

    def _end_abandoned_attempt(self) -> None:
        """Ends the attempt, since its client has left. Its service may do its work all the same."""
        self._gateway.handle_exchange_end(self._attempt, self._build_client_ending("left"))
        self._given_up = True
        if self._left is not None:
            self._left.set()

    # The line of an attempt.

    async def forward_request(self, request: HttpRequest, content: StreamReader) -> bytes:
        """Passes a request on as it comes. Gives its body once that has come whole; an empty one if it is too large to
        be kept, or the service has answered before its end. Raises what `content` does."""
        whole: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        body, first = bytearray(), b""

        def finish_body(known: bytes, error: BaseException | None = None) -> None:
            if not whole.done():
                whole.set_result(known) if error is None else whole.set_exception(error)

        def keep_body_part(part: bytes) -> None:
            """Keeps a part of the body, which ends the wait if it is the last one, or one too many to be kept."""
            if whole.done():
                return
            body.extend(part)
            if not part or len(body) == self._length <= BODY_MAX:
                finish_body(bytes(body))
            elif len(body) > BODY_MAX:
                finish_body(b"")

        is_typed = bool(request.get_header(b"content-type"))
        if self._length and (0 < self._length <= SMALL_MAX or not is_typed):
            # Most clients send a small body right behind its head. A service that answers the head alone would make it
            # a matter of chance whether the log has the body. Of a body without a type the beginning tells if it can be
            # a message of a protocol.
            with suppress(TimeoutError):
                async with asyncio.timeout(FIRST_S):
                    first = await content.readany()
                    keep_body_part(first)

        def finish_on_early_answer(_: object) -> None:
            """Takes the beginning of the answer, or its failure, which is the client's if that has gone."""
            finish_body(b"", None if self._line.transport is not None else ConnectionResetError())

        async def read_rest_of_body() -> bytes | None:
            nonlocal first
            # An upload's first part may have been read above already.
            if first:
                part, first = first, b""
                return part
            try:
                part = await content.readany()
            except Exception as error:
                finish_body(b"", error)
                raise
            # Before its last byte is passed on: a service may answer that at once, and the log would not have the body.
            keep_body_part(part)
            return part or None

        # The answer to a message is read, so it must not be packed. What is no JSON is no message.
        may_be_message = not is_typed and (not first or first.lstrip()[:1] in (b"{", b"["))
        leave_out = "accept-encoding" if may_be_message else ""
        self._asking = asyncio.ensure_future(self._ask_service(request, b"", read_rest_of_body, leave_out))
        self._asking.add_done_callback(finish_on_early_answer)
        try:
            return await whole
        except BaseException:
            self.cancel_forwarding()
            raise

    def cancel_forwarding(self) -> None:
        """Ends a request that was passed on, and of which there is no attempt."""
        if self._asking is not None and self._upstream is not None:
            # The connection goes with it: half a request was sent there.
            self._asking.cancel()
            self._upstream.close()

    async def _ask_service(self, request: HttpRequest, body: bytes, rest: Take | None, leave_out: str) -> GatewayAnswer:
        """The service's answer to a request without the field `leave_out`."""
        line, route, shared = self._line, self._route, self._gateway
        upstream = line.upstreams.get(route)
        # For this client alone: the ends of its connections mean something to the service.
        if upstream is None:
            proxy = find_proxy(route, shared.environment)
            upstream = line.upstreams[route] = Upstream(route, shared.timeout_s, shared.hasty, proxy)
        self._upstream = upstream
        fields = request.decoded_headers
        # Only where a loop is possible and has begun to pile up requests: the mark is a field that services see.
        if upstream.may_lead_back and len(shared.under_way) >= MANY:
            hops = request.get_header(HOP.lower().encode())
            fields = [*(field for field in fields if field[0].lower() != HOP.lower()), shared.build_hop_header(hops)]
        if leave_out:
            fields = [field for field in fields if field[0].lower() != leave_out]
        length = len(body) if body is not self.body else self._length
        return await upstream.send_request(request.method, request.target, fields, body, rest, length=length)

    async def request_service_answer(self, request: HttpRequest) -> GatewayAnswer:
        """The service's answer; one of the gateway's own if there is none. Raises OSError: its trial has ended
        meanwhile."""
        attempt, line = self._attempt, self._line
        if self._asking is not None:
            self._answer = await self._asking
        else:
            # whoever reads the answer wants it unpacked
            is_read = attempt.hit or attempt.of_model or attempt.message is not None
            # By identity first: comparing a body of megabytes costs more than all else here.
            same = self.rest is not None or request.body is self.body or request.body == self.body
            body = self.body if same else request.body
            self._answer = await self._ask_service(request, body, self.rest, "accept-encoding" if is_read else "")
        # The trial may end while its service is at work; the answer belongs to no trial then.
        if attempt.book is not self._gateway.seam.book:
            raise OSError("the trial has ended")
        # It may have gone while the service was asked, when there was no upstream to tell.
        if (line.left or line.transport is None) and self._upstream is not None:
            self._upstream.shut_down_sending()
        return self._answer

    async def wait_unless_client_left(self, delay_s: float) -> bool:
        """Waits until the time is over, or the client has left, which is True."""
        # The client may have left before anybody waited for it.
        if not self._given_up:
            self._left = self._left or asyncio.Event()
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._left.wait(), max(0.0, delay_s))
        return self._given_up

    def end_exchange_as_hang_up(self) -> None:
        self._lapsed = True
