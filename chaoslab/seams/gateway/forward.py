"""A forward proxy before the gateway's engine, for programs that ask for their usual hosts: absolute addresses, and
CONNECT, with TLS that ends here.

A host that is a route joins the path of all other requests. Any other passes unread, or is refused. It takes sockets
and not transports: only a socket lets it look at the first byte after a CONNECT and leave it there for TLS.
"""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from urllib.parse import urlsplit

from chaoslab.base.boundary import Through
from chaoslab.base.clock import system
from chaoslab.seams.gateway._connection import AT_ONCE, Connection, SentAnswer
from chaoslab.seams.gateway._rewriting import AddressRewriter
from chaoslab.seams.gateway._upstream import (
    OwnAnswer,
    connect_service,
    describe_os_error,
    describe_tls_error,
    read_head,
    wait_readable,
)
from chaoslab.seams.gateway.engine import Server, split_route_and_path
from chaoslab.seams.gateway.routes import CONNECT_S, PORTS, GatewayRoute, find_proxy, join_host_port, make_host_route
from chaoslab.seams.gateway.shared import HOP, Gateway
from chaoslab.seams.gateway.trust import VARIABLES, Trust
from chaoslab.wire.http1 import PART_MAX

_ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"
# The first byte of TLS.
_HANDSHAKE = b"\x16"
# The alerts of TLS with which programs turn a certificate down.
_DISTRUST = ("UNKNOWN_CA", "BAD_CERTIFICATE", "CERTIFICATE_UNKNOWN", "UNSUPPORTED_CERTIFICATE")


# In the head of a CONNECT, which nothing has parsed.
_HOPS = re.compile(rf"^{HOP}: *([^\r\n]*)", re.IGNORECASE | re.MULTILINE)


class ForwardProxy:
    """The proxy at a listener. `elsewhere`: pass or refuse, for hosts that are no routes."""

    def __init__(self, gateway: Gateway, listener: socket.socket, elsewhere: str) -> None:
        self._gateway, self._listener, self._passes = gateway, listener, elsewhere == "pass"
        self._trust = gateway.trust = Trust()
        gateway.proxy = "http://{}:{}".format(*listener.getsockname()[:2])

    async def accept_connections(self) -> None:
        """Takes connections until it is cancelled."""
        loop, tasks, server = asyncio.get_running_loop(), set[asyncio.Task[None]](), _Server(self._gateway, self)
        # asyncio's `sock_*` take non-blocking sockets only.
        self._listener.setblocking(False)
        while True:
            try:
                line, _ = await loop.sock_accept(self._listener)
            except OSError:  # there are too many
                await asyncio.sleep(1.0)
                continue
            # The loop keeps weak references alone, so the set holds the tasks.
            tasks.add(task := loop.create_task(self._serve_connection(line, server)))
            task.add_done_callback(tasks.discard)

    async def _serve_connection(self, line: socket.socket, server: _Server) -> None:
        """One connection of a program's."""
        with line, suppress(OSError, Through):  # the latter: the log is lost, and whoever reads it is told
            await wait_readable(line)
            # Only peeked at: the engine is to read the request from its beginning.
            if b"CONNECT ".startswith(line.recv(8, socket.MSG_PEEK)):
                await self._answer_connect(line, server)
            else:
                await self._serve_with_engine(line, server, None)

    async def _answer_connect(self, line: socket.socket, server: _Server) -> None:
        """Answers a CONNECT, and what comes after it."""
        loop = asyncio.get_running_loop()
        try:
            head = (await read_head(line)).decode("latin-1")
            _, target, _ = head.split("\r\n", 1)[0].split(" ")
            parts = urlsplit(f"//{target}")
            target_route = _make_route("https", parts.hostname or "", parts.port)
        except ValueError:
            await loop.sock_sendall(
                line, OwnAnswer(400, "CONNECT should name a host, as in api.openai.com:443").to_bytes()
            )
            return
        hops = " ".join(_HOPS.findall(head))
        route = (
            (508, self._gateway.warn_of_routing_loop(target_route.name))
            if self._gateway.mark in hops
            else self.find_route(target_route)
        )
        if isinstance(route, tuple):
            # Before the 200: a client that is refused afterwards could not be told.
            await loop.sock_sendall(line, OwnAnswer(*route).to_bytes())
            return
        if route is None:
            await self._tunnel_to_target(line, target_route, _ESTABLISHED, hops)
            return
        await loop.sock_sendall(line, _ESTABLISHED)
        # A byte of no protocol, for a client that says nothing.
        first = b"\0"
        with suppress(TimeoutError):  # in many protocols, the service speaks first
            async with asyncio.timeout(CONNECT_S):
                await wait_readable(line)
                first = line.recv(1, socket.MSG_PEEK)
        if first == _HANDSHAKE:
            await self._serve_with_engine(line, server, target_route, secure=True)
        # Methods of HTTP are letters.
        elif first.isalpha():
            await self._serve_with_engine(line, server, _make_route("http", target_route.host, target_route.port))
        # Empty: the client has gone.
        elif first:
            outcome = (
                "passes unread, so no fault can hit it" if self._passes else "is refused: --elsewhere pass lets it by"
            )
            self._gateway.warn_once(
                f"what goes to {target_route.name} is neither TLS nor HTTP: it {outcome}", aloud=True
            )
            if self._passes:
                await self._tunnel_to_target(line, target_route, b"", hops)

    async def _serve_with_engine(
        self, line: socket.socket, server: _Server, route: GatewayRoute | None, *, secure: bool = False
    ) -> None:
        """Has the engine answer on the connection, until it is over. `route`: the host at its other end, if it was told
        by a CONNECT."""
        loop, transport = asyncio.get_running_loop(), None
        protocol = _ProxiedConnection(server, route)
        try:
            context = self._trust.get_server_context(route.host) if secure and route is not None else None
            # asyncio's own are 60 and 30 s, which a program that does not believe in the authority would hold.
            times = {"ssl_handshake_timeout": CONNECT_S, "ssl_shutdown_timeout": 1.0} if context is not None else {}
            transport, _ = await loop.connect_accepted_socket(lambda: protocol, line, ssl=context, **times)
            await protocol.over.wait()
        # ValueError: a certificate cannot have that name.
        except (ssl.SSLError, ConnectionError, ValueError) as error:
            if route is not None:
                self._gateway.warn_once(
                    f"the program does not speak TLS for {route.host}: {_explain_handshake_failure(error)}", aloud=True
                )
        finally:
            if transport is not None:
                transport.abort()

    async def _tunnel_to_target(self, line: socket.socket, target_route: GatewayRoute, first: bytes, hops: str) -> None:
        """Passes all on in both directions, unread. `first`: the bytes that the program gets before; `hops`: the marks
        of the gateways on the way here."""
        loop = asyncio.get_running_loop()
        proxy = urlsplit(find_proxy(target_route, self._gateway.environment))
        try:
            async with asyncio.timeout(CONNECT_S):
                service = await connect_service(target_route, proxy, self._gateway.build_hop_header(hops))
        except OSError as error:
            reason = "it did not answer" if isinstance(error, TimeoutError) else describe_os_error(error)
            # After an answer of 200 there is no way to say why.
            if first:
                await loop.sock_sendall(
                    line, OwnAnswer(502, f"{target_route.name} cannot be reached: {reason}").to_bytes()
                )
            return

        async def copy_bytes(source: socket.socket, sink: socket.socket) -> None:
            while piece := await loop.sock_recv(source, PART_MAX):
                # Traffic that passes unread keeps the gateway from counting as quiet.
                self._gateway.asked_s = system.monotonic()
                await loop.sock_sendall(sink, piece)
            # Only this direction has ended; the other side may still send.
            sink.shutdown(socket.SHUT_WR)

        with service:
            await loop.sock_sendall(line, first)
            try:
                async with asyncio.TaskGroup() as both:
                    both.create_task(copy_bytes(line, service))
                    both.create_task(copy_bytes(service, line))
            except* OSError:  # a reset on one side is one on the other
                for end in (line, service):
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)

    def find_route(self, target: GatewayRoute) -> GatewayRoute | tuple[int, str] | None:
        """The route of what is asked for; the proxy's own status and words; or None if it passes unread."""
        routes = self._gateway.routes
        # The name with its port first: a route may be for one port of a host.
        for name in (target.name, target.host):
            if (route := routes.get(name)) is not None:
                return replace(target, name=name) if route == make_host_route(name) else route
        for route in routes.values():
            # A route of another name may lead to the very address that is asked for.
            if target == replace(route, name=target.name):
                return route
        own_ports = {
            urlsplit(url).port
            for url in (self._gateway.proxy, self._gateway.address, *self._gateway.addresses.values())
        }
        # To itself: each request would come back as one more.
        if target.is_local and target.port in own_ports:
            return 508, self._gateway.warn_of_routing_loop(target.name)
        if self._passes:
            self._gateway.warn_once(f"{target.name} is no route: what goes there passes unread")
            return None
        text = f"the host {target.host} is no route: name it with --route {target.host}, or let it by: --elsewhere pass"
        self._gateway.warn_once(text)
        return 403, text


class _Server(Server):
    """The engine's server of what comes over the proxy."""

    def __init__(self, gateway: Gateway, proxy: ForwardProxy) -> None:
        super().__init__(gateway, "")
        self._proxy = proxy

    def find_route(
        self, line: Connection, method: str, target: str, head: Mapping[str, str], *, old: bool
    ) -> tuple[GatewayRoute, str, AddressRewriter] | SentAnswer:
        assert isinstance(line, _ProxiedConnection)
        target_route = line.asked
        if target_route is None:
            try:
                parts = urlsplit(target)
                target_route = _make_route(parts.scheme, parts.hostname or "", parts.port)
            except ValueError:
                return line.send_gateway_answer(
                    400, f"this is the port of a proxy: HTTP_PROXY should be {self._gateway.proxy}"
                )
            # Over HTTP_PROXY even the gateway's own address may come this way.
            if f"http://{target_route.host}:{target_route.port}" == self._gateway.address:
                return super().find_route(line, method, target, head, old=old)
        route = self._proxy.find_route(target_route)
        if isinstance(route, tuple):
            return line.send_gateway_answer(*route)
        # A host without a route passes as it comes, with itself as its route.
        route = route or target_route
        return route, split_route_and_path(target, "host")[1], AddressRewriter(route, target_route.url, {}, {})


class _ProxiedConnection(Connection):
    """A program's connection at the proxy. `asked`: the host at its other end, if a CONNECT has told it."""

    def __init__(self, server: _Server, target_route: GatewayRoute | None) -> None:
        super().__init__(server)
        self.asked = target_route
        self.over = asyncio.Event()

    def connection_lost(self, exc: BaseException | None) -> None:
        super().connection_lost(exc)
        self.over.set()


def _make_route(scheme: str, host: str, port: int | None) -> GatewayRoute:
    """The route of a host and port at its own address. Raises ValueError: there is no such address."""
    if not host or scheme not in PORTS:
        raise ValueError("it names no host")
    port, host = port or PORTS[scheme], host.removesuffix(".")  # "api.test." is api.test, whole as it is
    return GatewayRoute(join_host_port(host, port), scheme, host, port)


def _explain_handshake_failure(error: Exception) -> str:
    """The reason for which a program ended its handshake, and what helps."""
    alerts = getattr(error, "reason", None) or ""
    turned = any(alert in alerts for alert in _DISTRUST)
    # Some programs send no alert and just close.
    if not turned and not isinstance(error, ConnectionError | ssl.SSLEOFError):
        return describe_tls_error(error)
    cause = "it does not believe" if turned else "it closed the connection in the handshake, as if it did not believe"
    return (
        f"{cause} in the authority made for this run. It should read one of {', '.join(VARIABLES)}; one that pins its "
        "certificates cannot be read: leave the host out"
    )
