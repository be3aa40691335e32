"""The gateway's side towards a service: one connection for each of a client's, kept while both sides keep it."""

from __future__ import annotations

import json
import select
import socket
import ssl
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache

from chaoslab.core.exchange import Failure
from chaoslab.seams.gateway.routes import Route
from chaoslab.seams.services.effects import SAFE
from chaoslab.wire.http1 import (
    CHUNKED,
    HOP_BY_HOP,
    UNTIL_CLOSED,
    Fields,
    Head,
    Malformed,
    Reader,
    chunk,
    framing_of_reply,
    spelt,
)

CONNECT_S = 10.0


class Broken(Exception):
    """A service that gave no answer. `status` is what the gateway answers in its place, and `words` say why."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status, self.words = status, words


def check_reached(route: Route, *, only_here: bool = False) -> None:
    """Checks that the route's service takes connections. `only_here`: if it is on this machine, and by loopback.

    Raises:
        LookupError: it takes none.
    """
    if only_here and not (route.host in ("localhost", "::1") or route.host.startswith("127.")):
        return
    try:
        socket.create_connection((route.host, route.port), CONNECT_S).close()
    except OSError as error:
        why = "it did not answer" if isinstance(error, TimeoutError) else error.strerror or error
        raise LookupError(f"the upstream {route.name} ({route.url}) cannot be reached: {why}: start it first") from None


@cache
def _context() -> ssl.SSLContext:
    return ssl.create_default_context()


_POLL_MAX_S = 2_000_000.0
"""The longest time that a poll can wait."""


def readable(*lines: socket.socket, within_s: float) -> list[socket.socket]:
    """The connections on which something comes, or that end, within this time, in whole milliseconds. Their number and
    that of all files may be large, which `select.select` does not allow."""
    poll = select.poll()
    for line in lines:
        poll.register(line, select.POLLIN)
    found = {number for number, _ in poll.poll(int(min(within_s, _POLL_MAX_S) * 1000))}
    return [line for line in lines if line.fileno() in found]


class Upstream:
    """A connection to a route's service. It is made when it is needed. `timeout_s` bounds each silence of the
    service. `watch` is given the connection when a request was sent, and may wait until something comes on it."""

    def __init__(self, route: Route, timeout_s: float) -> None:
        self.route, self._timeout_s = route, timeout_s
        self.watch: Callable[[socket.socket], object] = lambda _: None
        self._socket: socket.socket | None = None
        self._reader: Reader | None = None
        self._begun: tuple[bytes, Exception | None] | None = None

    def begun(self, line: socket.socket, unsent: bytes, held: bytes, error: Exception | None) -> None:
        """Takes a kept connection on which the next request was sent already, but for `unsent`, and the bytes `held` of
        its answer were read. `error`: it ended in this way."""
        line.settimeout(self._timeout_s)
        self._socket, self._reader = line, Reader(line.recv, held)
        self._begun = unsent, error

    def released(self) -> socket.socket | None:
        """The connection, for others to use; None if there is none that stands between two exchanges."""
        line, clean = self._socket, self._reader is not None and not self._reader.held and self.route.scheme == "http"
        if line is None or not clean:
            self.close()
            return None
        self._socket = self._reader = None
        return line

    def ask(self, method: str, target: str, fields: Fields, body: Iterable[bytes], *, length: int) -> Answered:
        """Sends a request and reads the head of its answer. `length`: of the body in bytes, or CHUNKED.

        Raises:
            Broken: there is no answer.
        """
        parts = iter(body)
        first = next(parts, b"")
        kept, begun, self._begun = self._socket is not None, self._begun, None
        try:
            return (
                self._going_on(method, *begun)
                if begun is not None
                else self._asked(method, target, fields, first, parts, length)
            )
        except (OSError, Malformed, EOFError) as error:
            self.close()
            stale = kept and isinstance(error, EOFError | ConnectionError) and 0 <= length <= len(first)
            if not stale or method not in SAFE:  # the service may have done the work
                raise self._broken(error) from None
        try:  # the service has closed the kept connection meanwhile
            return self._asked(method, target, fields, first, iter(()), length)
        except (OSError, Malformed, EOFError) as error:
            self.close()
            raise self._broken(error) from None

    def _asked(
        self, method: str, target: str, fields: Fields, first: bytes, rest: Iterator[bytes], length: int
    ) -> Answered:
        line = self._connected()
        head = head_for(self.route, method, target, fields, length)
        line.sendall(head + (chunk(first) if length == CHUNKED and first else first))
        for part in rest:
            line.sendall(chunk(part) if length == CHUNKED else part)
        if length == CHUNKED:
            line.sendall(b"0\r\n\r\n")
        return self._answered(method)

    def _going_on(self, method: str, unsent: bytes, error: Exception | None) -> Answered:
        if error is not None:
            raise error
        assert self._socket is not None
        self._socket.sendall(unsent)
        return self._answered(method)

    def _answered(self, method: str) -> Answered:
        assert self._reader is not None
        assert self._socket is not None
        if not self._reader.held:
            self.watch(self._socket)
        while (answer := self._reader.head()) is not None and answer.words[1].startswith("1"):
            pass  # 100 Continue and 103 Early Hints
        if answer is None:
            raise EOFError
        if not answer.words[1].isdecimal():
            raise Malformed(f"the line {' '.join(answer.words)[:60]!r}")
        return Answered(self, self._reader, answer, method)

    def _connected(self) -> socket.socket:
        if self._socket is not None and readable(self._socket, within_s=0):
            self.close()  # the service has closed it, or says something that nobody asked for
        if self._socket is None:
            line = socket.create_connection((self.route.host, self.route.port), CONNECT_S)
            try:
                line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if self.route.scheme == "https":
                    line = _context().wrap_socket(line, server_hostname=self.route.host)
                line.settimeout(self._timeout_s)
            except BaseException:
                line.close()
                raise
            self._socket, self._reader = line, Reader(line.recv)
        return self._socket

    def _broken(self, error: Exception) -> Broken:
        said = f"the upstream {self.route.name} ({self.route.url})"
        if isinstance(error, ssl.SSLError):
            return Broken(502, f"{said} refuses TLS: {getattr(error, 'verify_message', None) or error.reason}")
        if isinstance(error, TimeoutError):
            return Broken(504, f"{said} did not answer within {self._timeout_s:g} s")
        if isinstance(error, Malformed):
            return Broken(502, f"{said} does not speak HTTP/1.1: {error}")
        if isinstance(error, socket.gaierror):
            return Broken(502, f"{said} is not found: {error.strerror}")
        why = "it closed the connection" if isinstance(error, EOFError) else getattr(error, "strerror", None) or error
        return Broken(502, f"{said} gave no answer: {why}")

    def close(self) -> None:
        line, self._socket, self._reader = self._socket, None, None
        if line is not None:
            with suppress(OSError):
                line.close()


_OWN = HOP_BY_HOP | {"host", "content-length", "accept-encoding", "expect"}
"""Fields that the gateway sets itself. Without Accept-Encoding, a service answers in plain bytes, which faults can
read."""


def head_for(route: Route, method: str, target: str, fields: Fields, length: int) -> bytes:
    """The head of a request as a route's service gets it."""
    own = [("Host", route.authority), *[field for field in fields if field[0].lower() not in _OWN]]
    if length == CHUNKED:
        own.append(("Transfer-Encoding", "chunked"))
    elif length or method in ("POST", "PUT", "PATCH"):
        own.append(("Content-Length", str(length)))
    return spelt(f"{method} {route.base}{target} HTTP/1.1", own)


class Answered:
    """A service's answer whose head has come."""

    def __init__(self, upstream: Upstream, reader: Reader, head: Head, method: str) -> None:
        self._upstream, self._reader, self._head = upstream, reader, head
        self.status = int(head.words[1])
        self._framing = framing_of_reply(head, method)
        self.fields = [(name, value) for name, value in head.fields if name.lower() not in HOP_BY_HOP]

    def whole(self) -> tuple[int, Fields, bytes]:
        """The whole answer.

        Raises:
            Failure: it broke off.
        """
        return self.status, self.fields, b"".join(self.parts())

    def parts(self) -> Iterator[bytes]:
        """The body as it comes.

        Raises:
            Failure: it broke off, or nothing came for too long.
        """
        done = False
        try:
            yield from self._reader.body(self._framing)
            done = True
        except TimeoutError:
            raise Failure("timed_out") from None
        except (OSError, Malformed):
            raise Failure("closed") from None
        finally:
            if not done or self._framing == UNTIL_CLOSED or self._head.closes:
                self._upstream.close()


class Said:
    """An answer of the gateway's own, in place of a service's."""

    def __init__(self, status: int, words: str) -> None:
        self._body = json.dumps({"error": words}).encode()
        self.status = status
        self.fields: Fields = [("Content-Type", "application/json"), ("Content-Length", str(len(self._body)))]

    def whole(self) -> tuple[int, Fields, bytes]:
        return self.status, self.fields, self._body

    def parts(self) -> Iterator[bytes]:
        yield self._body
