"""The gateway's engine: one loop in one thread, where aiohttp reads the requests and each is an attempt at a service.

A request is read whole up to `BODY_MAX`, since its number depends on what it says, and so is an answer that a fault may
change. All else is passed on part by part, no faster than its reader takes it. A client that leaves ends the gateway's
direction of the connection to its service, as it would have ended its own.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager, suppress
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
from chaoslab.seams.gateway.requests import HOP, refusal, split
from chaoslab.seams.gateway.rewriting import Rewriting
from chaoslab.seams.gateway.routes import Route, proxy_for, unknown
from chaoslab.seams.gateway.shared import Gateway
from chaoslab.seams.gateway.upstream import FIELDS_MAX, Answered, Broken, Said, Switched, Take, Upstream, first_line
from chaoslab.seams.services.messages import Fields, HttpRequest
from chaoslab.seams.services.seam import ServiceAttempt
from chaoslab.seams.services.seam import Take as Taking
from chaoslab.seams.services.web_socket import UPGRADED
from chaoslab.wire.body import BODY_MAX
from chaoslab.wire.http1 import CHUNKED, HEAD_MAX, READ_MAX

LEFT_S = 0.25
"""The time from the end of a client's own direction until it has left, in seconds: some end theirs with the request,
and still take the answer."""
MANY = 16
"""The exchanges under way at once from which on requests to this machine, or a proxy, bear the gateway's mark: one that
has passed through many gateways, or one many times, may never end."""
HELD_MAX = 4 * BODY_MAX
"""The size in bytes of a piece of memory that is taken and given back at the start. From then on glibc keeps up to
twice as much that is free; it gave the memory of large bodies back to the system after each, and had it cleared again.
"""
Beside = Callable[[], Coroutine[None, None, None]]
_CLOSES = 0x8
"""The first half byte of the frame that ends a WebSocket."""


class Sent:
    """The end of an exchange whose answer was sent already, in the form of an answer of aiohttp's."""

    def __init__(self, *, keep_alive: bool) -> None:
        self.keep_alive = keep_alive

    async def prepare(self, request: web.BaseRequest) -> None: ...

    async def write_eof(self) -> None: ...


class Connection(RequestHandler):
    """A client's connection, and those to the services that it asks. `left`: it has ended its own direction."""

    __slots__ = ("exchange", "left", "upstreams")

    def __init__(self, server: Server) -> None:
        super().__init__(
            server, loop=asyncio.get_running_loop(), auto_decompress=False, read_bufsize=READ_MAX,
            max_line_size=HEAD_MAX, max_field_size=HEAD_MAX, max_headers=FIELDS_MAX,
            access_log=None,  # type: ignore[arg-type]  # which means none
        )  # fmt: skip
        self.upstreams: dict[Route, Upstream] = {}
        self.exchange: Exchange | None = None
        self.left = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        assert isinstance(transport, asyncio.WriteTransport)
        secure = self.ssl_context is not None  # whose transport takes a limit of 0 for one that is always reached
        transport.set_write_buffer_limits(
            int(secure), 0
        )  # what was sent is with the system, so what was taken is known

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
        if self.transport is None or self.ssl_context is not None:  # TLS knows no half of a connection
            return None
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
            self.logger.exception("the gateway failed", exc_info=exc)
            self.force_close()
        else:
            self.say(status, f"this is no HTTP/1.1: {first_line(message)}")
        return Sent(keep_alive=False)  # type: ignore[return-value]  # it has all that is asked of one

    def log_exception(self, *args: Any, **more: Any) -> None:
        """Tells of what fails while there is a client. One may leave while the rest of its upload is thrown away."""
        if self.transport is not None:
            super().log_exception(*args, **more)

    def say(self, status: int, words: str | dict[str, Any]) -> Sent:
        """Answers with the gateway's own words, or JSON, and nothing comes after."""
        if self.transport is not None:
            self.transport.write(Said(status, words).spelt())
        return Sent(keep_alive=False)

    @property
    def asked_more(self) -> bool:
        """True if a further request has come already."""
        return bool(self._messages)


class Server(web.Server):
    """The server of one port. `only`: the route whose port it is; empty for that of all."""

    def __init__(self, gateway: Gateway, only: str) -> None:
        super().__init__(self._answer)  # type: ignore[arg-type]  # as in `handle_error`
        self._gateway, self._only = gateway, only

    def __call__(self) -> RequestHandler:
        return Connection(self)

    async def _answer(self, request: web.BaseRequest) -> Sent:
        line = request.protocol
        assert isinstance(line, Connection)
        try:
            return await self._answered(request, line)
        except (OSError, RequestPayloadError) as error:
            if isinstance(error, RequestPayloadError) and line.transport is not None:
                return line.say(400, f"this is no HTTP/1.1: {first_line(str(error))}")
        except Through:  # the log is lost: whoever reads it is told
            pass
        line.force_close()
        return Sent(keep_alive=False)

    def led(
        self, line: Connection, method: str, target: str, said: Mapping[str, str], *, old: bool
    ) -> tuple[Route, str, Rewriting] | Sent:
        """The route of a request, its path there and the rewriting of the answer; or the gateway's own answer. `said`:
        the request's fields, by their names in lower case; `old`: it is in HTTP/1.0."""
        host, gateway = said.get("host", ""), self._gateway
        if (host or not old) and (refused := refusal(said.get("origin", ""), host.lower())) is not None:
            return line.say(403, refused)
        if (
            not self._only
            and (controls := gateway.controls) is not None
            and controls.stop is not None
            and target.startswith(PATH)
        ):
            with gateway.lock:
                status, answer = controls.asked(method, target)
            return line.say(status, answer)
        name, path = split(target, self._only)
        if name not in gateway.routes:
            return line.say(404, unknown(name, gateway.routes))
        own = f"http://{host}" if host else gateway.addresses.get(self._only, gateway.address)
        own = own if self._only else f"{own}/{name}"
        return gateway.routes[name], path, Rewriting(gateway.routes[name], own, gateway.routes, gateway.prefixes)

    async def _answered(self, request: web.BaseRequest, line: Connection) -> Sent:
        said = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in request.raw_headers}
        old = request.version < (1, 1)
        target = request.raw_path.encode("utf-8", "surrogateescape").decode("latin-1")
        if self._gateway.mark in said.get(HOP.lower(), ""):
            return line.say(508, self._gateway.loop(target.partition("?")[0][:60]))
        led = self.led(line, request.method, target, said, old=old)
        if isinstance(led, Sent):
            return led
        route, path, rewriting = led
        if said.get("expect", "").lower() == "100-continue" and line.transport is not None:
            line.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        if line.left and not request.content.is_eof():
            raise ConnectionResetError
        body, rest = await _read(request.content)
        length = CHUNKED if "transfer-encoding" in said else int(said.get("content-length", 0))
        asked = HttpRequest(request.method, path, list(request.raw_headers), b"" if rest else body)
        exchange = Exchange(self._gateway, line, route, body, rest, length)
        attempt = self._gateway.asked(route.name, asked, exchange)
        if attempt is None:
            line.force_close()
            return Sent(keep_alive=False)
        client = Client(line, attempt, rewriting, old=old, closes=not request.keep_alive)
        self._gateway.under_way.add(attempt)
        try:
            goes_on = await exchange.run(attempt, client)
        finally:
            self._gateway.under_way.remove(attempt)
            line.exchange = None
            if line.transport is None:
                line.close_upstreams()
        return Sent(keep_alive=goes_on and (not line.left or line.asked_more))


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
        self, gateway: Gateway, line: Connection, route: Route, body: bytes, rest: Take | None, length: int
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
        self._gateway.ended(attempt, client.seen("left" if how == "timed_out" else how))
        if self._leaving is not None:
            self._leaving.cancel()
        if self._upstream is not None:
            clean = self._answer is not None and self._answer.clean
            goes_on = await self._upstream.done(clean=clean) and goes_on
        if how == "reset":
            reset(self._line)
        elif how is not None:
            self._line.force_close()
        self._attempt = self._client = None  # a circle would wait for the collector, which costs a tenth of a request
        return goes_on

    async def _sent(self, attempt: ServiceAttempt, client: Client) -> bool:
        if attempt.hit and self._rest is None:
            started, parts = await attempt.played()
            status, ready = int(started[0][0][:3]), None
        else:
            answer = await self.application(attempt.request)
            started, status = [(str(answer.status), answer.fields)], answer.status
            parts = taken = _Taken(answer, attempt.taking(started))
            ready = await taken.begin(wait=answer.measured or attempt.message is not None)
        own = self._answer
        reason = own.reason if own is not None and own.status == status else phrase(status, "")
        if status == UPGRADED:
            return await self._switched(started[0][1], reason, ready or b"", parts, client)
        return await client.send(status, started[0][1], reason, ready, parts)

    async def _switched(self, fields: Fields, reason: str, ready: bytes, parts: Parts, client: Client) -> bool:
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
            return await client.send(UPGRADED, fields, reason, ready, parts) and False
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
            self._gateway.ended(self._attempt, self._client.seen("left"))
        self._left.set()

    # The line of an attempt.

    async def application(self, request: HttpRequest) -> Answered | Said:
        """The service's answer; one of the gateway's own if there is none.

        Raises:
            OSError: its trial has ended meanwhile.
        """
        attempt, line, route, shared = self._attempt, self._line, self._route, self._gateway
        assert attempt is not None
        upstream = line.upstreams.get(route)
        if upstream is None:
            proxy = proxy_for(route, shared.environment)
            upstream = line.upstreams[route] = Upstream(route, shared.timeout_s, shared.hasty, proxy)
        self._upstream = upstream
        fields = request.fields
        if upstream.may_lead_back and len(shared.under_way) >= MANY:
            hops = request.header(HOP.lower().encode())
            fields = [*(field for field in fields if field[0].lower() != HOP.lower()), shared.hop(hops)]
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


class _Taken(Parts):
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


@contextmanager
def running(gateway: Gateway, listeners: Mapping[str, socket.socket], beside: Beside | None = None) -> Iterator[None]:
    """A context with a thread in which the gateway answers at these listeners, by the route whose port each is.
    `beside` runs in its loop. Afterwards all connections are closed."""
    ready, loop, stop = Event(), asyncio.new_event_loop(), asyncio.Event()
    bytes(HELD_MAX)

    async def serve() -> None:
        servers = [(Server(gateway, only), listener) for only, listener in listeners.items()]
        open_ = [await loop.create_server(server, sock=listener, backlog=1024) for server, listener in servers]
        task = loop.create_task(beside()) if beside is not None else None
        ready.set()
        await stop.wait()
        for each in open_:
            each.close()
        for line in [line for server, _ in servers for line in server.connections]:
            line.force_close()
        if task is not None:  # before the others, which are its
            task.cancel()

    def run() -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: loop) as runner:  # which ends what goes on in it
                runner.run(serve())
        finally:
            ready.set()

    thread = Thread(target=run, name="gateway", daemon=True)
    thread.start()
    ready.wait()
    try:
        yield
    finally:
        with suppress(RuntimeError):  # the loop has ended by itself
            loop.call_soon_threadsafe(stop.set)
        thread.join()
