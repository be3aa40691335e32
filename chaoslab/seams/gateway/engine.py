"""The gateway's engine: one loop in one thread, where aiohttp reads the requests and each is an attempt at a service.

A request is read whole up to `BODY_MAX`, since its number depends on what it says, and so is an answer that a fault may
change. All else is passed on part by part, no faster than its reader takes it. A client that leaves ends the gateway's
direction of the connection to its service, as it would have ended its own.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from threading import Event, Thread
from typing import Any

from aiohttp import StreamReader, web
from aiohttp.web_protocol import RequestHandler, RequestPayloadError

from chaoslab.base.boundary import Through
from chaoslab.base.phrases import phrase
from chaoslab.core.exchange import Failure
from chaoslab.core.stream import Parts
from chaoslab.seams.gateway.client import Client, reset
from chaoslab.seams.gateway.controls import PATH
from chaoslab.seams.gateway.requests import refusal, split
from chaoslab.seams.gateway.rewriting import Rewriting
from chaoslab.seams.gateway.routes import unknown
from chaoslab.seams.gateway.shared import Gateway
from chaoslab.seams.gateway.upstream import FIELDS_MAX, Answered, Broken, Said, Switched, Take, Upstream
from chaoslab.seams.services.messages import Fields, HttpRequest
from chaoslab.seams.services.seam import ServiceAttempt
from chaoslab.seams.services.seam import Take as Taking
from chaoslab.seams.services.web_socket import UPGRADED
from chaoslab.wire.body import BODY_MAX
from chaoslab.wire.http1 import CHUNKED, HEAD_MAX, PART_MAX, spelt

LEFT_S = 0.25
"""The time from the end of a client's own direction until it has left, in seconds: some end theirs with the request,
and still take the answer."""
_CLOSES = 0x8
"""The first half byte of the frame that ends a WebSocket."""


class _Sent:
    """The end of an exchange whose answer was sent already, in the form of an answer of aiohttp's."""

    def __init__(self, *, keep_alive: bool) -> None:
        self.keep_alive = keep_alive

    async def prepare(self, request: web.BaseRequest) -> None: ...

    async def write_eof(self) -> None: ...


class _Connection(RequestHandler):
    """A client's connection, and those to the services that it asks. `left`: it has ended its own direction."""

    __slots__ = ("exchange", "left", "upstreams")

    def __init__(self, server: _Server) -> None:
        super().__init__(
            server, loop=asyncio.get_running_loop(), auto_decompress=False, read_bufsize=PART_MAX,
            max_line_size=HEAD_MAX, max_field_size=HEAD_MAX, max_headers=FIELDS_MAX,
            access_log=None,  # type: ignore[arg-type]  # which means none
        )  # fmt: skip
        self.upstreams: dict[str, Upstream] = {}
        self.exchange: Exchange | None = None
        self.left = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        assert isinstance(transport, asyncio.WriteTransport)
        transport.set_write_buffer_limits(0)  # what was sent is with the system, so what a client took is known

    def connection_lost(self, exc: BaseException | None) -> None:
        super().connection_lost(exc)
        if self.exchange is not None:
            self.exchange.gone()
        else:
            self.close_upstreams()

    def close_upstreams(self) -> None:
        for upstream in self.upstreams.values():
            upstream.close()

    def data_received(self, data: bytes) -> None:
        """Tells who reads a body that it is no HTTP any more."""
        super().data_received(data)
        if self._messages and (error := getattr(self._messages[-1][0], "exc", None)) is not None:
            request = self._current_request
            bodies = [body for _, body in self._messages][:-1] + ([request.content] if request is not None else [])
            for body in bodies:
                if not body.is_eof():
                    body.set_exception(RequestPayloadError(str(error)))

    def eof_received(self) -> bool | None:  # type: ignore[override]
        """Keeps the connection for the answers to what was asked."""
        request, waiter = self._current_request, self._waiter
        idle = not self._request_count if waiter is None else not waiter.done()
        if idle or self._payload_parser is not None or (request is not None and not request.content.is_eof()):
            return None
        self.left = True
        if self.exchange is not None:
            self.exchange.half_closed()
        return True

    def handle_error(
        self, _: web.BaseRequest, status: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> web.StreamResponse:
        """Answers what is no HTTP, in one line. Any other error is the lab's own."""
        if message is None:
            self.log_exception("the gateway failed", exc_info=exc)
            self.force_close()
        else:
            self.say(status, f"this is no HTTP/1.1: {message.strip().splitlines()[0].rstrip(':')}")
        return _Sent(keep_alive=False)  # type: ignore[return-value]  # it has all that is asked of one

    def say(self, status: int, words: str | dict[str, Any]) -> _Sent:
        """Answers with the gateway's own words, or JSON, and nothing comes after."""
        said = Said(status, words)
        head = spelt(f"HTTP/1.1 {status} {phrase(status, '')}", [*said.fields, ("Connection", "close")])
        if self.transport is not None:
            self.transport.write(head + said.ready())
        return _Sent(keep_alive=False)

    @property
    def asked_more(self) -> bool:
        """True if a further request has come already."""
        return bool(self._messages)


class _Server(web.Server):
    """The server of one port. `only`: the route whose port it is; empty for that of all."""

    def __init__(self, gateway: Gateway, only: str) -> None:
        super().__init__(self._answer)  # type: ignore[arg-type]  # as in `handle_error`
        self._gateway, self._only = gateway, only

    def __call__(self) -> RequestHandler:
        return _Connection(self)

    async def _answer(self, request: web.BaseRequest) -> _Sent:
        line = request.protocol
        assert isinstance(line, _Connection)
        try:
            return await self._answered(request, line)
        except (OSError, RequestPayloadError) as error:
            if isinstance(error, RequestPayloadError) and line.transport is not None:
                return line.say(400, f"this is no HTTP/1.1: {str(error).strip().splitlines()[0].rstrip(':')}")
        except Through:  # the log is lost: whoever reads it is told
            pass
        line.force_close()
        return _Sent(keep_alive=False)

    async def _answered(self, request: web.BaseRequest, line: _Connection) -> _Sent:
        said = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in request.raw_headers}
        host, old = said.get("host", ""), request.version < (1, 1)
        if (host or not old) and (refused := refusal(said.get("origin", ""), host.lower())) is not None:
            return line.say(403, refused)
        target = request.raw_path.encode("utf-8", "surrogateescape").decode("latin-1")
        controls = self._gateway.controls
        if controls is not None and not self._only and target.startswith(PATH):
            with self._gateway.lock:
                status, answer = controls.asked(request.method, target)
            return line.say(status, answer)
        name, path = split(target, self._only)
        if name not in self._gateway.routes:
            return line.say(404, unknown(name, self._gateway.routes))
        if said.get("expect", "").lower() == "100-continue" and line.transport is not None:
            line.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        if line.left and not request.content.is_eof():
            raise ConnectionResetError
        body, rest = await _read(request.content)
        length = CHUNKED if "transfer-encoding" in said else int(said.get("content-length", 0))
        asked = HttpRequest(request.method, path, list(request.raw_headers), b"" if rest else body)
        exchange = Exchange(self._gateway, line, name, body, rest, length)
        attempt = self._gateway.asked(name, asked, exchange)
        if attempt is None:
            line.force_close()
            return _Sent(keep_alive=False)
        own = f"http://{host}" if host else self._gateway.addresses.get(self._only, self._gateway.address)
        rewriting = Rewriting(
            self._gateway.routes[name],
            own if self._only else f"{own}/{name}",
            self._gateway.routes,
            self._gateway.prefixes,
        )
        client = Client(line, attempt, rewriting, old=old, closes=not request.keep_alive)
        self._gateway.under_way[id(attempt)] = attempt
        try:
            goes_on = await exchange.run(attempt, client)
        finally:
            self._gateway.over([id(attempt)])
            line.exchange = None
            if line.transport is None:
                line.close_upstreams()
        return _Sent(keep_alive=goes_on and (not line.left or line.asked_more))


async def _read(content: StreamReader) -> tuple[bytes, Take | None]:
    """The body, or its beginning and what gives the rest if it is larger than what is kept."""
    kept, size = list[bytes](), 0
    while size <= BODY_MAX:
        part = await content.readany()
        if not part:
            return b"".join(kept), None
        kept.append(part)
        size += len(part)

    async def rest() -> bytes | None:
        return await content.readany() or None

    return b"".join(kept), rest


class Exchange:
    """One request under way: the line of its attempt. `body`: that of the request, or its beginning, with `rest`;
    `length`: of all of it in bytes, or CHUNKED."""

    trip_s = 0.0

    def __init__(
        self, gateway: Gateway, line: _Connection, route: str, body: bytes, rest: Take | None, length: int
    ) -> None:
        self._gateway, self._line, self._route = gateway, line, route
        self._body, self._rest, self._length = body, rest, length
        self._attempt: ServiceAttempt | None = None
        self._client: Client | None = None
        self._upstream: Upstream | None = None
        self._answer: Answered | Said | None = None
        self._leaving: asyncio.TimerHandle | None = None
        self._left = asyncio.Event()
        self._lapsed = False

    async def run(self, attempt: ServiceAttempt, client: Client) -> bool:
        """Answers the request; False if the connection is over."""
        self._attempt, self._client, self._line.exchange = attempt, client, self
        if self._line.transport is None:
            self.gone()
        elif self._line.left:
            self.half_closed()
        how: str | None = None
        goes_on = False
        try:
            goes_on = await self._sent(attempt, client)
        except Failure as failure:
            how = failure.kind
        except OSError:
            how = "left"
        if how == "timed_out" and not self._lapsed and not client.gone:
            await self.wait(self._gateway.seam.timeout_s)
        with self._gateway.lock:
            attempt.ended(client.seen("left" if how == "timed_out" else how))
        if self._leaving is not None:
            self._leaving.cancel()
        if self._upstream is not None:
            clean = self._answer is not None and self._answer.clean
            goes_on = await self._upstream.done(clean=clean) and goes_on
        if how == "reset":
            reset(self._line)
        elif how is not None:
            self._line.force_close()
        return goes_on

    async def _sent(self, attempt: ServiceAttempt, client: Client) -> bool:
        if attempt.hit and self._rest is None:
            started, parts = await attempt.played()
            status, ready = int(started[0][0][:3]), None
        else:
            answer = await self.application(attempt.request)
            started, status = [(str(answer.status), answer.fields)], answer.status
            measured = any(name.lower() == "content-length" for name, _ in answer.fields)
            parts = taken = _Taken(answer, attempt.taking(started))
            ready = await taken.begin(wait=measured or attempt.message is not None)
        own = self._answer
        reason = own.reason if own is not None and own.status == status else phrase(status, "")
        if status == UPGRADED:
            return await self._switched(started[0][1], reason, parts, client)
        return await client.send(status, started[0][1], reason, ready, parts)

    async def _switched(self, fields: Fields, reason: str, parts: Parts, client: Client) -> bool:
        """Passes on what both sides of a WebSocket say, until one of them ends it."""
        assert self._upstream is not None
        service, said = self._upstream.protocol, Switched(self._line).stream
        assert service is not None

        async def ask() -> None:
            with suppress(OSError):
                while part := await said.readany():
                    client.said_goodbye = client.said_goodbye or part[0] & 0xF == _CLOSES
                    if service.transport is None:
                        return
                    service.transport.write(part)
                    await service._drain_helper()
            service.close()

        asking = asyncio.ensure_future(ask())
        try:
            return await client.send(UPGRADED, fields, reason, b"", parts) and False
        finally:
            asking.cancel()
            self._upstream.close()
            self._line.force_close()

    # The client's going.

    def half_closed(self) -> None:
        """Takes the end of the client's own direction. It has left unless it takes its answer at once."""
        if self._client is not None:
            self._client.half_closed = True
        if self._upstream is not None:
            self._upstream.leave()
        if self._leaving is None:
            if self._attempt is not None and not self._attempt.over:
                self._attempt.waited()
            self._leaving = asyncio.get_running_loop().call_later(LEFT_S, self._gave_up)

    def gone(self) -> None:
        """Takes the end of the client's connection."""
        if self._client is not None:
            self._client.gone = True
        if self._upstream is not None:
            self._upstream.leave()
        self._gave_up()

    def _gave_up(self) -> None:
        """Ends the attempt, since its client has left. Its service may do its work all the same."""
        if self._attempt is not None and self._client is not None and not self._attempt.over:
            with self._gateway.lock:
                self._attempt.ended(self._client.seen("left"))
        self._left.set()

    # The line of an attempt.

    async def application(self, request: HttpRequest) -> Answered | Said:
        """The service's answer; one of the gateway's own if there is none.

        Raises:
            OSError: its trial has ended meanwhile.
        """
        attempt, line = self._attempt, self._line
        assert attempt is not None
        shared = self._gateway
        if self._route not in line.upstreams:
            line.upstreams[self._route] = Upstream(
                shared.routes[self._route], shared.timeout_s, shared.hasty, shared.proxies.get(self._route, "")
            )
        self._upstream = upstream = line.upstreams[self._route]
        fields = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in request.headers]
        if attempt.hit or attempt.of_model or attempt.message is not None:  # whoever reads the answer wants it unpacked
            fields = [field for field in fields if field[0].lower() != "accept-encoding"]
        changed = self._rest is None and request.body is not self._body and request.body != self._body
        body, length = (request.body, len(request.body)) if changed else (self._body, self._length)
        try:
            self._answer = await upstream.ask(request.method, request.target, fields, body, self._rest, length=length)
        except Broken as broken:
            self._answer = Said(broken.status, broken.words)
        if attempt.book is not self._gateway.seam.book:
            raise OSError("the trial has ended")
        if line.left or line.transport is None:
            upstream.leave()
        return self._answer

    async def wait(self, delay_s: float) -> bool:
        """Waits until the time is over, or the client has left, which is True."""
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._left.wait(), max(0.0, delay_s))
        return self._left.is_set()

    def lapse(self) -> None:
        self._lapsed = True


class _Taken:
    """A service's own answer, of which the attempt takes each part first."""

    def __init__(self, answer: Answered | Said, taking: Taking) -> None:
        self._answer, self._taking = answer, taking
        self._broke: Failure | None = None
        self._over = False

    async def begin(self, *, wait: bool) -> bytes:
        """The part that has come already, or the first one if it may `wait` for it. Its failure is told by `take`."""
        part: bytes | None = self._answer.ready()
        if not part and wait:
            try:
                part = await self._answer.take()
            except Failure as broke:
                part, self._broke = b"", broke
        self._over = part is None
        self._taking(part)
        return part or b""

    async def take(self) -> bytes | None:
        if self._broke is not None:
            raise self._broke
        if self._over:
            return None
        part = await self._answer.take()
        self._over = part is None
        self._taking(part)
        return part

    async def aclose(self) -> None:
        """Does nothing: the exchange ends with its client."""


@asynccontextmanager
async def _serving(gateway: Gateway, listeners: Mapping[str, socket.socket]) -> AsyncIterator[None]:
    """A context in which the listeners answer. Afterwards all connections are closed."""
    loop = asyncio.get_running_loop()
    servers = [_Server(gateway, only) for only in listeners]
    open_ = [
        await loop.create_server(server, sock=listener, backlog=1024)
        for server, listener in zip(servers, listeners.values(), strict=True)
    ]
    try:
        yield
    finally:
        for each in open_:
            each.close()
        for server in servers:
            for line in server.connections:
                line.force_close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)


@contextmanager
def running(gateway: Gateway, listeners: Mapping[str, socket.socket]) -> Iterator[None]:
    """A context with a thread in which the gateway answers at these listeners, by the route whose port each is."""
    ready, over = Event(), Event()
    loop = asyncio.new_event_loop()

    async def serve() -> None:
        async with _serving(gateway, listeners):
            ready.set()
            await stop.wait()

    stop = asyncio.Event()

    def run() -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: loop) as runner:
                runner.run(serve())
        finally:
            ready.set()
            over.set()

    thread = Thread(target=run, name="gateway", daemon=True)
    thread.start()
    ready.wait()
    try:
        yield
    finally:
        if not over.is_set():
            loop.call_soon_threadsafe(stop.set)
        thread.join()
