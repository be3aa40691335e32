"""The gateway's engine: one loop in one thread, where aiohttp reads the requests and each is an attempt at a service.

A request that a fault may hit is read whole up to `BODY_MAX`, since its number depends on what it says, and so is an
answer that a fault may change. All else is passed on part by part, no faster than its reader takes it. A client that
leaves ends the gateway's direction of the connection to its service, as it would have ended its own.
"""

import asyncio
import socket
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager, suppress
from threading import Event, Thread

from aiohttp import StreamReader, web
from aiohttp.web_protocol import RequestHandler, RequestPayloadError

from chaoslab.base.boundary import Through
from chaoslab.seams.gateway._connection import Connection, Exchange, SentAnswer
from chaoslab.seams.gateway._rewriting import AddressRewriter
from chaoslab.seams.gateway._upstream import Take, get_first_line
from chaoslab.seams.gateway.controls import PATH
from chaoslab.seams.gateway.routes import GatewayRoute, describe_unknown_route
from chaoslab.seams.gateway.shared import HOP, Gateway
from chaoslab.seams.services.messages import HttpRequest
from chaoslab.wire.http1 import BODY_MAX, CHUNKED

# The size in bytes of a piece of memory that is taken and given back at the start. From then on glibc keeps up to twice
# as much that is free; it gave the memory of large bodies back to the system after each, and had it cleared again.
HELD_MAX = 4 * BODY_MAX
# The names under which a client may ask for the gateway. Any other is a page's of a browser that was led here.
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1", "[::1]", "host.docker.internal"})
Beside = Callable[[], Coroutine[None, None, None]]


class Server(web.Server):
    """The server of one port. `only`: the route whose port it is; empty for that of all."""

    def __init__(self, gateway: Gateway, only: str) -> None:
        super().__init__(self._answer)  # type: ignore[arg-type]  # as in `handle_error`
        self._gateway, self._only = gateway, only

    def __call__(self) -> RequestHandler:
        return Connection(self)

    async def _answer(self, request: web.BaseRequest) -> SentAnswer:
        line = request.protocol
        assert isinstance(line, Connection)
        try:
            return await self._route_and_answer(request, line)
        except (OSError, RequestPayloadError) as error:
            if isinstance(error, RequestPayloadError) and line.transport is not None:
                return line.send_gateway_answer(400, f"this is no HTTP/1.1: {get_first_line(str(error))}")
        except Through:  # the log is lost: whoever reads it is told
            pass
        line.force_close()
        return SentAnswer(keep_alive=False)

    def find_route(
        self, line: Connection, method: str, target: str, head: Mapping[str, str], *, old: bool
    ) -> tuple[GatewayRoute, str, AddressRewriter] | SentAnswer:
        """The route of a request, its path there and the rewriting of the answer; or the gateway's own answer. `head`:
        the request's fields, by their names in lower case; `old`: it is in HTTP/1.0."""
        host, gateway = head.get("host", ""), self._gateway
        # HTTP/1.0 has no Host; in 1.1 its absence is no name that a page could have led here.
        if (host or not old) and (refused := explain_refused_origin(head.get("origin", ""), host.lower())) is not None:
            return line.send_gateway_answer(403, refused)
        if (
            not self._only
            and (controls := gateway.controls) is not None
            and controls.stop is not None
            and target.startswith(PATH)
        ):
            # Below the lock: a lever changes what the next attempt is decided by.
            with gateway.lock:
                status, answer = controls.answer_control_request(method, target)
            return line.send_gateway_answer(status, answer)
        name, path = split_route_and_path(target, self._only)
        if name not in gateway.routes:
            return line.send_gateway_answer(404, describe_unknown_route(name, gateway.routes))
        # By the name that the client used, so that an address in an answer leads back to that.
        own_address = f"http://{host}" if host else gateway.addresses.get(self._only, gateway.address)
        own_address = own_address if self._only else f"{own_address}/{name}"
        return (
            gateway.routes[name],
            path,
            AddressRewriter(gateway.routes[name], own_address, gateway.routes, gateway.route_addresses),
        )

    async def _route_and_answer(self, request: web.BaseRequest, line: Connection) -> SentAnswer:
        # raw_headers keep the order and the spelling of names, which services may depend on.
        fields = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in request.raw_headers]
        said = {name.lower(): value for name, value in fields}
        old = request.version < (1, 1)
        # aiohttp decodes a path as UTF-8; the service is to get its own bytes.
        target = request.raw_path.encode("utf-8", "surrogateescape").decode("latin-1")
        # Before the route: a loop takes connections until the system has none left.
        if self._gateway.mark in said.get(HOP.lower(), ""):
            return line.send_gateway_answer(508, self._gateway.warn_of_routing_loop(target.partition("?")[0][:60]))
        led = self.find_route(line, request.method, target, said, old=old)
        if isinstance(led, SentAnswer):
            return led
        route, path, rewriting = led
        # Of gzip, chunked only the latter would go on, as the parser has taken both apart.
        if (coding := said.get("transfer-encoding", "chunked")).lower() != "chunked":
            return line.send_gateway_answer(
                400, f"the Transfer-Encoding {coding!r:.80} is none that the gateway passes on"
            )
        if said.get("expect", "").lower() == "100-continue" and line.transport is not None:
            # Here and not at the service: its body is read before anybody is asked.
            line.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        # A request that its client cut is none.
        if line.left and not request.content.is_eof():
            raise ConnectionResetError
        length = CHUNKED if "transfer-encoding" in said else int(said.get("content-length", 0))
        unnamed = bool(length) and route.name not in self._gateway.routes  # it is passed on as it comes
        head, known = (request.method, path, list(request.raw_headers)), b""
        exchange = Exchange(self._gateway, line, request, route, rewriting, length)
        if unnamed:
            exchange.rest = _make_rest_reader(request.content)
        # Nothing to read first where no fault can hit it: full duplex would come to a stop.
        elif (
            length
            and not request.content.is_eof()
            and self._gateway.should_stream_body(route.name, said.get("content-type", ""))
        ):
            known = await exchange.forward_request(HttpRequest(*head, b""), request.content)
        elif length:
            # Read whole up to a bound: its number depends on what it says.
            exchange.body, exchange.rest = await _read_body_start_and_rest(request.content)
            known = b"" if exchange.rest else exchange.body
        http_request = HttpRequest(*head, known)
        http_request.__dict__["fields"] = fields  # which were read already
        attempt = self._gateway.open_attempt(route.name, http_request, exchange)
        if attempt is None:
            exchange.cancel_forwarding()
            # The trial has ended: the request belongs to none.
            raise ConnectionResetError
        self._gateway.under_way.add(attempt)
        try:
            goes_on = await exchange.serve_attempt(attempt)
        finally:
            self._gateway.under_way.remove(attempt)
            line.exchange = None
            if line.transport is None:
                line.close_upstreams()
        # A client that has ended its direction gets what it asked for, and nothing is read any more.
        return SentAnswer(keep_alive=goes_on and (not line.left or line.has_next_request))


def split_route_and_path(target: str, only: str) -> tuple[str, str]:
    """The route's name and the rest of the path. `only`: the route of the port, whose name no path has."""
    if target.startswith(("http://", "https://")):  # as to a proxy
        target = "/" + target.split("/", 3)[3] if target.count("/") > 2 else "/"
    if only:
        return only, target
    path, mark, query = target.partition("?")
    name, _, rest = path.removeprefix("/").partition("/")
    return name, f"/{rest}{mark}{query}"


def explain_refused_origin(origin: str, host: str) -> str | None:
    """The words for a request that a browser makes for a page, or one under a foreign name; None for any other. `host`:
    in lower case."""
    name = _strip_port(host)
    # some programs send their own
    if origin and _strip_port(origin.lower().partition("://")[2]) not in LOOPBACK | {name}:
        return f"the gateway answers programs, not pages of a browser (Origin: {origin[:60]})"
    if name not in LOOPBACK:
        return f"the gateway answers to 127.0.0.1 and localhost, not to {host[:60]!r}"
    return None


def _strip_port(host: str) -> str:
    """A host without its port, and without the dot that may end a whole name."""
    return (host.rpartition(":")[0] if ":" in host.rpartition("]")[2] else host).removesuffix(".")


async def _read_body_start_and_rest(content: StreamReader) -> tuple[bytes, Take | None]:
    """The body, or its beginning and what gives the rest if it is larger than what is kept."""
    pieces, size = list[bytes](), 0
    while size <= BODY_MAX:
        piece = await content.readany()
        if not piece:
            return b"".join(pieces), None
        pieces.append(piece)
        size += len(piece)

    return b"".join(pieces), _make_rest_reader(content)


def _make_rest_reader(content: StreamReader) -> Take:
    async def read_rest() -> bytes | None:
        return await content.readany() or None

    return read_rest


@contextmanager
def run_gateway(
    gateway: Gateway, listeners: Mapping[str, socket.socket], beside: Beside | None = None
) -> Iterator[None]:
    """A context with a thread in which the gateway answers at these listeners, by the route whose port each is.
    `beside` runs in its loop. Afterwards all connections are closed."""
    ready, loop, stop = Event(), asyncio.new_event_loop(), asyncio.Event()
    # Taken and given back: from then on glibc keeps the memory of large bodies, which saves CPU time.
    bytes(HELD_MAX)

    async def serve() -> None:
        servers = [(Server(gateway, only), listener) for only, listener in listeners.items()]
        open_ = [await loop.create_server(server, sock=listener, backlog=1024) for server, listener in servers]
        task = loop.create_task(beside()) if beside is not None else None
        ready.set()
        await stop.wait()
        # asyncio leaves open what a server has accepted just before it is closed. So accepting ends first, and the
        # last connections are made, which takes two turns of the loop.
        for listener in listeners.values():
            loop.remove_reader(listener)
        for _ in range(3):
            await asyncio.sleep(0)
        for acceptor in open_:
            acceptor.close()
        for line in [line for server, _ in servers for line in server.connections]:
            line.force_close()
        if task is not None:  # before the others, which are its
            task.cancel()

    def run_loop() -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: loop) as runner:  # which ends what goes on in it
                runner.run(serve())
        finally:
            # In a `finally`, or a loop that could not begin would leave the caller waiting.
            ready.set()

    # Daemon: a gateway that hangs must not keep its process.
    thread = Thread(target=run_loop, name="gateway", daemon=True)
    thread.start()
    ready.wait()
    try:
        yield
    finally:
        with suppress(RuntimeError):  # the loop has ended by itself
            loop.call_soon_threadsafe(stop.set)
        thread.join()
