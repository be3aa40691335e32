"""The gateway's side towards a service: one connection for each of a client's, kept while both sides keep it.

aiohttp's protocol reads the answers. The bytes of requests are spelled here, since its client would add fields, change
reasons and pool connections. A client's connections are its own, since their ends mean something: its FIN is passed on,
and a service's reset stays one.
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import re
import select
import socket
import ssl
from base64 import b64encode
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import cache
from math import inf
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

from aiohappyeyeballs import start_connection
from aiohttp import ClientError, ClientOSError, ServerDisconnectedError, http_exceptions
from aiohttp.client_proto import ResponseHandler
from aiohttp.http_parser import RawResponseMessage
from aiohttp.streams import EMPTY_PAYLOAD, StreamReader
from aiohttp.web_protocol import RequestPayloadError

from chaoslab.base.phrases import get_status_phrase
from chaoslab.core.exchange import Failure
from chaoslab.core.stream import EVENT_STREAM, IN_LINES, BodyParts
from chaoslab.seams.gateway.routes import CONNECT_S, PORTS, GatewayRoute, join_host_port
from chaoslab.seams.services.effects import SAFE
from chaoslab.seams.services.messages import UPGRADED
from chaoslab.seams.services.seam import Take as Taking
from chaoslab.wire.http1 import CHUNKED, HEAD_MAX, HOP_BY_HOP, PART_MAX, READ_MAX, Fields, render_chunk, render_head

# The time within which a service that keeps its connections does not close one, in seconds.
HASTY_S = 1.0
FIELDS_MAX = 1000
"""The most fields of a head."""
Take = Callable[[], Awaitable[bytes | None]]
"""Gives the next part of a body; None at its end."""
_STREAMS = (EVENT_STREAM, *IN_LINES)
_LOST = (ServerDisconnectedError, ClientOSError, ConnectionError)
_ERRORS = (OSError, ClientError, http_exceptions.HttpProcessingError, asyncio.TimeoutError)


@cache
# Read once in a process: the certificates take 50 ms.
def _make_tls_context() -> ssl.SSLContext:
    return ssl.create_default_context()


class _Protocol(ResponseHandler):
    """aiohttp's reader of answers. `lost`: the error that ended the connection.

    One timer bounds all silences, where aiohttp makes one for each part that comes.
    """

    lost: BaseException | None = None
    of_head: bool | None = None
    """True if what it reads next are answers to HEAD; None before the first."""
    at_head = False
    """True until the head of an answer has come."""
    # Once a connection: a new poll for each request was a part of its cost.
    _coming: select.poll | None = None
    _due_s = inf
    _watch: asyncio.TimerHandle | None = None

    def _reschedule_timeout(self) -> None:
        if self._read_timeout:
            self._due_s = self._loop.time() + self._read_timeout
            # One timer that looks whether it is due costs less than to cancel one for each part.
            if self._watch is None:
                self._watch = self._loop.call_at(self._due_s, self._check_silence)

    def _drop_timeout(self) -> None:
        self._due_s = inf

    def _check_silence(self) -> None:
        self._watch = None
        if self._loop.time() >= self._due_s:
            self._on_read_timeout()
        elif self._due_s < inf:
            self._watch = self._loop.call_at(self._due_s, self._check_silence)

    def is_stale(self) -> bool:
        """True if the service has closed its kept connection, or says something that nobody asked for. The loop may
        not have noticed yet."""
        if self.transport is None or not self.is_connected():
            return True
        if self._coming is None:
            # Under TLS bytes may come that are no answer, such as a session ticket.
            if self.transport.get_extra_info("ssl_object"):
                return False
            self._coming = select.poll()
            self._coming.register(self.transport.get_extra_info("socket"), select.POLLIN)
        # 0: it only looks.
        return bool(self._coming.poll(0))

    def data_received(self, data: bytes) -> None:
        """Takes a head apart from what comes with it. Of a service that sends more than its Content-Length aiohttp's
        reader forgets what it was given together with what is too much; as it is, the answer passes and the rest is
        left, as by other clients and proxies."""
        # 4 is the length of the blank line, so 3 is what a miss gives.
        if self.at_head and (end := data.find(b"\r\n\r\n") + 4) > 3:
            self.at_head = False
            if end < len(data):
                super().data_received(data[:end])
                data = data[end:]
        super().data_received(data)

    def connection_lost(self, exc: BaseException | None) -> None:
        """A service may have answered before it broke off what was being sent to it, so that is read first."""
        self.lost = exc
        self._coming = None
        # A timer that lives on would keep the connection's objects.
        if self._watch is not None:
            self._watch.cancel()
        if exc is not None and self.transport is not None and not self.transport.get_extra_info("ssl_object"):
            # A copy of the socket, since asyncio closes its own here.
            with suppress(OSError, ValueError), self.transport.get_extra_info("socket").dup() as line:
                line.setblocking(False)
                while data := line.recv(PART_MAX):
                    self.data_received(data)
        super().connection_lost(exc)


class Switched:
    """The bytes that come over a connection which speaks another protocol now. `protocol`: aiohttp's, of either
    side."""

    def __init__(self, protocol: Any) -> None:
        self.stream = StreamReader(protocol, PART_MAX, loop=asyncio.get_running_loop())
        protocol.set_parser(self, self.stream) if isinstance(protocol, ResponseHandler) else protocol.set_parser(self)

    def feed_data(self, data: bytes) -> tuple[bool, bytes]:
        self.stream.feed_data(data)
        return False, b""

    def feed_eof(self) -> None:
        self.stream.feed_eof()


class Upstream:
    """A connection to a route's service. It is made when it is needed. `timeout_s` bounds each silence of the service;
    `hasty`: the routes whose services close their connections without saying so; `proxy`: the address of the proxy on
    the way, if any."""

    def __init__(self, route: GatewayRoute, timeout_s: float, hasty: set[str], proxy: str = "") -> None:
        self.route, self._timeout_s, self._hasty = route, timeout_s, hasty
        self._proxy = urlsplit(proxy)
        self.may_lead_back = route.is_local or bool(proxy)
        """True if another gateway may be at the other end."""
        self._idle_s = 0.0
        """The moment since which the connection is kept."""
        self.protocol: _Protocol | None = None
        self._pump: asyncio.Task[bool] | None = None

    async def send_request(
        self, method: str, target: str, fields: Fields, body: bytes, rest: Take | None, *, length: int
    ) -> GatewayAnswer:
        """Sends a request and reads the head of its answer, or says why there is none. `body`: its body, or the
        beginning of it, with `rest`; `length`: of all of it in bytes, or CHUNKED."""
        head = build_request_head(self.route, method, target, fields, length)
        if self._proxy.hostname and self.route.scheme == "http":
            first, rest_of_head = head.split(b"\r\n", 1)
            # A proxy for plain HTTP wants the whole address in the first line (RFC 9112, section 3.2.2).
            absolute = first.replace(b" ", b" http://" + self.route.authority.encode(), 1)
            head = absolute + b"\r\n" + render_head("", build_proxy_credentials(self._proxy))[2:-2] + rest_of_head
        # At most twice: a second failure is on a new connection, and so not stale.
        while True:
            is_kept = False
            try:
                is_kept = await self._ensure_connection()
                return await self._send_and_read_head(method, head, body, rest, chunked=length == CHUNKED)
            except _ERRORS as error:
                self.close()
                # With a rest that was read already the request could not be sent once more.
                stale = is_kept and rest is None and isinstance(error, _LOST)
                if stale:  # the service has closed the kept connection meanwhile
                    self._record_early_close()
                # A client should not repeat an unsafe request by itself (RFC 9110, section 9.2.2).
                if not stale or method not in SAFE:  # it may have done the work
                    return self._make_failure_answer(error)

    async def _ensure_connection(self) -> bool:
        """Makes a connection unless there is one, which is True."""
        loop, route = asyncio.get_running_loop(), self.route
        # Closed by the service, or about to be: what is sent there would be lost.
        if self.protocol is not None and (self.protocol.should_close or self.protocol.is_stale()):
            self._record_early_close()
            self.close()
        if self.protocol is not None:
            return True
        host, port = get_connect_address(route, self._proxy)
        options: dict[str, Any] = {"host": host, "port": port}
        # Over all of it: the handshake of TLS alone may take 60 s in asyncio.
        async with asyncio.timeout(CONNECT_S):
            if route.scheme == "https":
                # asyncio makes TLS over a socket that a proxy has connected already.
                options = {"sock": await connect_service(route, self._proxy)} if self._proxy.hostname else options
                options |= {"ssl": _make_tls_context(), "server_hostname": route.host}
            _, self.protocol = await loop.create_connection(lambda: _Protocol(loop), **options)
        return False

    def _record_early_close(self) -> None:
        """Notes a service that did not keep its connection, though it had not said so. Its next one is not kept either:
        a request might come on it just when it closes."""
        # Later than that, closing an idle connection is what all servers do.
        if asyncio.get_running_loop().time() - self._idle_s < HASTY_S:
            self._hasty.add(self.route.name)

    async def _send_and_read_head(
        self, method: str, head: bytes, body: bytes, rest: Take | None, *, chunked: bool
    ) -> ServiceAnswer:
        protocol = self.protocol
        assert protocol is not None
        # Set when the kind changes only: each time it makes a new parser.
        if protocol.of_head is not (of_head := method == "HEAD"):
            protocol.of_head = of_head
            protocol.set_response_params(
                # Bodies as they come: unpacked they would be no answer of this service's any more.
                skip_payload=of_head,
                read_until_eof=True,
                auto_decompress=False,
                read_timeout=self._timeout_s,
                read_bufsize=READ_MAX,
                max_line_size=HEAD_MAX,
                max_field_size=HEAD_MAX,
                max_headers=FIELDS_MAX,
            )
        # Anew for each request: an answer that is a stream has switched it off.
        protocol.read_timeout = self._timeout_s
        protocol.at_head = True
        last = b"0\r\n\r\n" if chunked and rest is None else b""
        sent = render_chunk(body) if chunked and body else body
        if len(sent) > PART_MAX:  # which costs less than the copies of it
            _write(protocol, head)
            _write(protocol, memoryview(sent))
            head = sent = b""
        if head or last:
            _write(protocol, head + sent + last)
        if rest is None:
            # A silence counts from the end of the request; with a rest it is not sent yet.
            protocol.start_timeout()
        else:
            self._pump = asyncio.ensure_future(self._pump_body(protocol, rest, chunked=chunked))
        # Informational answers (100, 103) come before the real one, and are not passed on.
        while True:
            message, payload = await protocol.read()
            if message.code >= 200 or message.code == UPGRADED:
                if message.code == UPGRADED or message.headers.get("Content-Type", "").startswith(_STREAMS):
                    protocol._drop_timeout()  # whose silence is no fault of the service's
                    protocol.read_timeout = None
                return ServiceAnswer(self, protocol, message, payload)

    async def _pump_body(self, protocol: _Protocol, rest: Take, *, chunked: bool) -> bool:
        """Sends the rest of a body while the answer may come already. True if all of it was sent."""
        # A service that does not read its request to the end has answered early; that is no error.
        with suppress(OSError, RequestPayloadError):
            while (piece := await rest()) is not None:
                await protocol._drain_helper()
                _write(protocol, render_chunk(piece) if chunked else piece)
            if chunked:
                _write(protocol, b"0\r\n\r\n")
            protocol.start_timeout()
            return True
        return False

    async def finish_exchange(self, *, clean: bool) -> bool:
        """Ends an exchange; True if all of its request was sent. `clean`: its answer came whole."""
        pump, self._pump, protocol = self._pump, None, self.protocol
        sent = True
        if pump is not None:
            # If the service closes, its answer is whole, but nobody reads the rest of the request.
            lost = protocol.closed if protocol is not None and clean else None
            if lost is not None:
                lost.add_done_callback(lambda end: end.cancelled() or end.exception())  # which asyncio would print
                await asyncio.wait((pump, lost), return_when=asyncio.FIRST_COMPLETED)
            sent = pump.done() and pump.result()
            pump.cancel()
        self._idle_s = asyncio.get_running_loop().time()
        ends = protocol is None or protocol.should_close or self.route.name in self._hasty
        if not clean or not sent or ends:
            self.close()
        return sent

    def shut_down_sending(self) -> None:
        """Ends the gateway's direction of the connection, as a client does that leaves. The service may say yet what it
        has done."""
        if self.protocol is not None and self.protocol.transport is not None:
            self.protocol.force_close()
            with suppress(OSError):
                self.protocol.transport.get_extra_info("socket").shutdown(socket.SHUT_WR)

    def _make_failure_answer(self, error: BaseException) -> OwnAnswer:
        subject = f"the upstream {self.route.name} ({self.route.url})"
        if isinstance(error, ssl.SSLError):
            return OwnAnswer(
                502, f"{subject} refuses TLS: {getattr(error, 'verify_message', None) or describe_tls_error(error)}"
            )
        if isinstance(error, asyncio.TimeoutError):
            # 504 as gateways answer for a service that is too slow, 502 for all else.
            return OwnAnswer(504, f"{subject} did not answer within {self._timeout_s:g} s")
        if isinstance(error, http_exceptions.HttpProcessingError):
            return OwnAnswer(502, f"{subject} does not speak HTTP/1.1: {get_first_line(error.message)}")
        if isinstance(error, socket.gaierror):
            return OwnAnswer(502, f"{subject} is not found: {error.strerror}")
        return OwnAnswer(502, f"{subject} gave no answer: {describe_os_error(error)}")

    def close(self) -> None:
        protocol, self.protocol = self.protocol, None
        if protocol is not None:
            protocol.close()
        if self._pump is not None:
            self._pump.cancel()
            self._pump = None


def get_first_line(message: str) -> str:
    """The first line of what is wrong with a head or a body, without the excerpt that follows it."""
    # aiohttp's own words come behind those of the status, in a line of their own.
    return message.removeprefix("400, message:").strip().splitlines()[0].rstrip(":")


def describe_tls_error(error: Exception) -> str:
    """The reason that OpenSSL gives, as in "wrong version number"."""
    return (getattr(error, "reason", None) or str(error)).lower().replace("_", " ")


def describe_os_error(error: BaseException) -> str:
    """The reason that the system gives, in words."""
    if isinstance(error, OSError):
        # Where asyncio tried several addresses, the number stands in the text alone.
        number = error.errno or next(iter(re.findall(r"\[Errno ([1-9]\d*)\]", str(error))), None)
        if number:  # asyncio lists the errors of all addresses
            return os.strerror(int(number)) if not isinstance(error, socket.gaierror) else str(error.strerror)
        if error.strerror:
            return error.strerror
    return "it closed the connection"


def _write(protocol: ResponseHandler, data: bytes | memoryview) -> None:
    if protocol.transport is None:
        raise ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET))
    protocol.transport.write(data)


def get_connect_address(route: GatewayRoute, proxy: SplitResult) -> tuple[str, int]:
    """The host and the port to connect to for a route's service."""
    return (proxy.hostname, proxy.port or PORTS["http"]) if proxy.hostname else (route.host, route.port)


async def connect_service(route: GatewayRoute, proxy: SplitResult, *marks: tuple[str, str]) -> socket.socket:
    """A connection to a route's service, through the proxy on the way, if there is one. `marks`: fields that it is
    sent. Raises OSError: there is none."""
    loop, (host, port) = asyncio.get_running_loop(), get_connect_address(route, proxy)
    # Happy eyeballs, as asyncio does it for plain connections: a host with a dead address of IPv6 must not cost its
    # timeout.
    line = await start_connection(await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM))
    try:
        if proxy.hostname:
            target = join_host_port(route.host, route.port)
            fields = [("Host", target), *build_proxy_credentials(proxy), *marks]
            await loop.sock_sendall(line, render_head(f"CONNECT {target} HTTP/1.1", fields))
            first = (await read_head(line)).split(b"\r\n")[0].decode("latin-1")
            status = first.split(" ")[1:2] or [first]
            # The proxy's words may be anything; 20 characters are enough for a status.
            if status != ["200"]:
                raise OSError(0, f"the proxy {proxy.hostname} says {status[0][:20]}")
    except BaseException:
        line.close()
        raise
    return line


async def wait_readable(line: socket.socket) -> None:
    """Waits until something comes on a connection, which stays there."""
    loop, ready = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(line, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(line)


async def read_head(line: socket.socket) -> bytes:
    """The head that comes on a connection, and no byte of what follows it. Raises OSError: there is none."""
    head, end = b"", -1
    while end < 0:
        await wait_readable(line)
        # Peeked at first: what follows the head belongs to whoever reads next, TLS for example.
        coming, tail = line.recv(HEAD_MAX, socket.MSG_PEEK), head[-3:]
        # The end may lie across two pieces, so the last three bytes of the one before are looked at too.
        end = (tail + coming).find(b"\r\n\r\n")
        head += line.recv(len(coming) if end < 0 else end + 4 - len(tail))
        if not coming or len(head) > HEAD_MAX:
            raise ConnectionResetError
    return head


# Fields that the gateway sets itself.
_OWN = HOP_BY_HOP | {"host", "content-length", "expect", "upgrade"}
# The only protocol that a connection may go on in. Of others, as of h2c, nothing could be read, and no fault hit it: a
# service answers the request in HTTP/1.1 then.
UPGRADE = "websocket"


def build_request_head(route: GatewayRoute, method: str, target: str, fields: Fields, length: int) -> bytes:
    """The head of a request as a route's service gets it."""
    # Fields that a Connection field names are of this connection only (RFC 9110, section 7.6.1).
    named = [value for name, value in fields if name.lower() == "connection"]
    excluded = (
        _OWN | {field_name.strip().lower() for value in named for field_name in value.split(",")} if named else _OWN
    )
    sent = [("Host", route.authority), *[field for field in fields if field[0].lower() not in excluded]]
    upgrades = [field for field in fields if field[0].lower() == "upgrade" and field[1].strip().lower() == UPGRADE]
    # Upgrade counts only if Connection names it (RFC 9110, section 7.8).
    if upgrades and any("upgrade" in value.lower() for value in named):
        sent += [("Connection", "Upgrade"), *upgrades]
    if length == CHUNKED:
        sent.append(("Transfer-Encoding", "chunked"))
    # For methods that mostly have content a length of 0 is stated too (RFC 9110, section 8.6).
    elif length or method in ("POST", "PUT", "PATCH"):
        sent.append(("Content-Length", str(length)))
    return render_head(f"{method} {route.base}{target} HTTP/1.1", sent)


def build_proxy_credentials(proxy: SplitResult) -> Fields:
    """The name and the password in a proxy's address, as a field."""
    if not proxy.username:
        return []
    name, word = unquote(proxy.username), unquote(proxy.password or "")
    return [("Proxy-Authorization", "Basic " + b64encode(f"{name}:{word}".encode()).decode())]


class GatewayAnswer(BodyParts):
    """An answer to the client. `clean`: the whole body was taken; `measured`: it says how long its body is."""

    status: int
    reason: str
    fields: Fields
    clean = measured = True
    _taking: Taking | None = None
    _broke: Failure | None = None
    _over = False

    def read_ready_part(self) -> bytes:
        """The part of the body that has come already. Chunks are told one by one, by `read_part`."""
        raise NotImplementedError

    async def read_next_part(self) -> bytes | None:
        """The next part of the body; None at its end. Raises Failure: it broke off, or nothing came for too long."""
        return self.read_ready_part() or None

    async def read_first_part(self, taking: Taking, *, wait: bool) -> bytes:
        """The part that has come already, or the first one if it may `wait` for it. Its failure is told by `read_part`.
        `taking` is given each part first."""
        self._taking, piece = taking, self.read_ready_part() or None
        # The head goes out all the same, as the service sent it; `read_part` tells of the break.
        if piece is None and wait:
            try:
                piece = await self.read_next_part()
                self._over = piece is None
            except Failure as broke:
                piece, self._broke = b"", broke
        # The seam takes each part before the client does, so that an effect is noted before anybody acts on the answer.
        taking(piece if wait else piece or b"")
        return piece or b""

    async def read_part(self) -> bytes | None:
        if self._broke is not None:
            raise self._broke
        if self._over:
            return None
        piece = await self.read_next_part()
        self._over = piece is None
        if self._taking is not None:
            self._taking(piece)
        return piece

    def iterate_parts(self) -> BodyParts:
        return self


class ServiceAnswer(GatewayAnswer):
    """A service's answer whose head has come."""

    def __init__(
        self, upstream: Upstream, protocol: _Protocol, message: RawResponseMessage, payload: StreamReader
    ) -> None:
        self._upstream, self._protocol, self._payload = upstream, protocol, payload
        self.status = message.code
        # aiohttp decodes reasons as UTF-8 with surrogates for what is none; so the bytes are got back.
        self.reason = message.reason.encode("utf-8", "surrogateescape").decode("latin-1")
        fields = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in message.raw_headers]
        names = [name.lower() for name, _ in fields]
        self.fields: Fields = [field for field, name in zip(fields, names, strict=True) if name not in HOP_BY_HOP]
        self.measured = "content-length" in names
        # An answer to HEAD may say chunked, and has no chunks to be read.
        self._chunked = message.chunked and payload is not EMPTY_PAYLOAD
        # Without either, the end of the connection is the end of the body.
        self._endless = not message.chunked and not self.measured
        self.clean = False
        if message.code == UPGRADED:
            self._payload = Switched(protocol).stream
            self.fields += [field for field in fields if field[0].lower() in ("connection", "upgrade")]

    def read_ready_part(self) -> bytes:
        if self._chunked or self._payload is EMPTY_PAYLOAD or self._payload.exception() is not None:
            return b""
        return self._payload.read_nowait()

    async def read_next_part(self) -> bytes | None:
        try:
            piece, has_more, broke = b"", self._chunked, False
            # aiohttp tells of a chunk's end by an empty piece.
            while has_more and not piece:
                piece, has_more = await self._payload.readchunk()
            # `readchunk` gives nothing more once it has all chunks, and what is not chunked never had any.
            piece = piece or await self._payload.readany()
        except TimeoutError:
            raise Failure("timed_out") from None
        except (*_ERRORS, RuntimeError):  # the last: it broke off between two parts
            piece, broke = self._payload._read_nowait(-1), True  # what came before the end
        if piece:
            return piece
        # Of an endless body a reset is a break, though its end would be the end of the connection.
        if broke or (self._endless and self._protocol.lost is not None):
            raise Failure("reset" if isinstance(self._protocol.lost, ConnectionResetError) else "closed")
        self.clean = True
        return None


class OwnAnswer(GatewayAnswer):
    """An answer of the gateway's own, in place of a service's."""

    def __init__(self, status: int, content: str | dict[str, Any]) -> None:
        self._left = body = json.dumps({"error": content} if isinstance(content, str) else content).encode()
        self.status, self.reason = status, get_status_phrase(status, "")
        self.fields: Fields = [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]

    def to_bytes(self) -> bytes:
        """The answer as the last one on its connection."""
        return (
            render_head(f"HTTP/1.1 {self.status} {self.reason}", [*self.fields, ("Connection", "close")])
            + self.read_ready_part()
        )

    def read_ready_part(self) -> bytes:
        body, self._left = self._left, b""
        return body
