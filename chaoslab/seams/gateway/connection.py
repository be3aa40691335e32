"""One connection of a client's to the gateway: its requests one after the other, each an attempt at a service."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import chain
from threading import Thread

from chaoslab.core.exchange import Failure
from chaoslab.seams.gateway.requests import refusal, split
from chaoslab.seams.gateway.routes import unknown
from chaoslab.seams.gateway.shared import Gateway
from chaoslab.seams.gateway.upstream import Broken, Said, Upstream, readable
from chaoslab.seams.services.line import Answer, Answered, Seen
from chaoslab.seams.services.messages import HttpRequest, is_stream
from chaoslab.seams.services.seam import ServiceAttempt
from chaoslab.seams.services.stream_view import StreamView
from chaoslab.wire.body import BODY_MAX
from chaoslab.wire.http1 import (
    BODILESS,
    HOP_BY_HOP,
    Fields,
    Head,
    Malformed,
    Reader,
    chunk,
    framing_of_request,
    spelt,
    status_line,
)  # fmt: skip


def serve(gateway: Gateway, line: socket.socket, only: str = "") -> None:
    """Answers a client's requests until it hangs up, in the loop or in a thread. `only`: as in `Connection`."""
    if gateway.loop is None or not gateway.loop.take(line, only, b"", {}):
        Thread(target=Connection(gateway, line, only).serve, daemon=True).start()


class Connection:
    """A client's connection, and those to the services that it asks. `only`: the route whose port it came to; empty at
    the port of all. `held`: the bytes that were read from it."""

    trip_s = 0.0

    def __init__(self, gateway: Gateway, line: socket.socket, only: str = "", held: bytes = b"") -> None:
        self._gateway, self._line, self._only, self._reader = gateway, line, only, Reader(line.recv, held)
        self._upstreams: dict[str, Upstream] = {}
        self._route = ""
        self._attempt: ServiceAttempt | None = None
        self._lapsed = self._left = False
        self._body: Iterable[bytes] = ()
        self._length = 0

    def serve(self) -> None:
        self._serve(self._requests)

    def go_on(self, attempt: ServiceAttempt, head: Head, upstream: Upstream) -> None:
        """Ends an exchange that was begun elsewhere, and serves what comes after."""

        def served() -> None:
            self._route, self._body = attempt.name, (attempt.request.body,)
            self._length = len(attempt.request.body)
            self._upstreams[self._route] = upstream
            if self._ended(attempt, head, large=False) and not self._given_back():
                self._requests()

        self._serve(served)

    def send_rest(self, attempt: ServiceAttempt, answer: Answered, data: bytes, sent: int) -> None:
        """Sends the rest of an answer, and serves what comes after."""

        def served() -> None:
            self._route, how = attempt.name, None
            try:
                self._line.sendall(data[sent:])
            except OSError:
                how = "left"
            with self._gateway.lock:
                size = sent if how else len(data)
                attempt.ended(Seen(how, answer if size else None, size))
            self._gateway.over([id(attempt)])
            if how is None and not self._given_back():
                self._requests()

        self._serve(served)

    def _requests(self) -> None:
        while (head := self._reader.head()) is not None:
            if not self._answered(head) or self._given_back():
                return

    def _given_back(self) -> bool:
        """Gives the connection to the loop if its last route is the loop's; True if the loop has it now."""
        shared = self._gateway
        if shared.loop is None or not shared.passes(self._route):
            return False
        kept = {name: line for name, each in self._upstreams.items() if (line := each.released()) is not None}
        if shared.loop.take(self._line, self._only, self._reader.held, kept):
            self._left = True
            return True
        for line in kept.values():
            line.close()
        return False

    def _serve(self, serve: Callable[[], None]) -> None:
        try:
            serve()
        except Malformed as error:
            self._say(400, f"this is no HTTP/1.1: {error}")
        except OSError:
            pass
        finally:
            for upstream in self._upstreams.values():
                upstream.close()
            if not self._left:
                with suppress(OSError):
                    self._line.close()

    def _answered(self, head: Head) -> bool:
        """Answers one request; False if the connection is over."""
        method, target = head.words[0], head.words[1]
        if (refused := refusal(head.field("origin"), head.field("host").lower())) is not None:
            self._say(403, refused)
            return False
        self._route, path = split(target, self._only)
        route = self._gateway.routes.get(self._route)
        framing = framing_of_request(head)
        if head.field("expect").lower() == "100-continue":
            self._line.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        if route is None:
            self._say(404, unknown(self._route, self._gateway.routes))
            return False
        body, rest = self._read(framing)
        large = rest is not None
        fields = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in head.fields]
        request = HttpRequest(method, path, fields, b"" if large else body)
        self._body, self._length = (chain((body,), rest), framing) if rest is not None else ((body,), len(body))
        self._lapsed = False
        attempt = self._gateway.asked(self._route, request, self)
        if attempt is None:
            return False
        self._gateway.under_way[id(attempt)] = attempt
        return self._ended(attempt, head, large=large)

    def _ended(self, attempt: ServiceAttempt, head: Head, *, large: bool) -> bool:
        """Answers a request that is under way; False if the connection is over."""
        try:
            return self._exchanged(attempt, head, large=large) and not head.closes
        finally:
            self._gateway.over([id(attempt)])

    def _read(self, framing: int) -> tuple[bytes, Iterator[bytes] | None]:
        """The body, or its beginning and the parts of the rest if it is larger than what is kept."""
        parts, kept = self._reader.body(framing), bytearray()
        for part in parts:
            kept += part
            if len(kept) > BODY_MAX:
                return bytes(kept), parts
        return bytes(kept), None

    def _exchanged(self, attempt: ServiceAttempt, head: Head, *, large: bool) -> bool:
        """Answers a request that was numbered; False if the connection is over. One that is too large to be kept is
        passed on as it is."""
        client = _Client(self._line, attempt, head)
        self._attempt = attempt
        how: str | None
        try:
            if attempt.hit and not large:
                started, parts = attempt.play()
            else:
                answer = self.application(attempt.request)
                started = [(str(answer.status), answer.fields)]
                parts = attempt.answering(started, answer.parts())
            goes_on = client.send(started, parts)
            how = None
        except Failure as failure:
            how, goes_on = failure.kind, False
        except OSError:
            how, goes_on = "left", False
        if how == "reset":
            self._line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        elif how == "timed_out" and not self._lapsed and not client.gone:
            self.wait(self._gateway.seam.timeout_s)
        with self._gateway.lock:
            attempt.ended(client.seen("left" if how == "timed_out" else how))
        return goes_on

    # The line of an attempt.

    def application(self, request: HttpRequest) -> Answer:
        """The service's answer; one of the gateway's own if there is none.

        Raises:
            OSError: its trial has ended meanwhile.
        """
        upstream = self._upstreams.get(self._route)
        if upstream is None:
            route = self._gateway.routes[self._route]
            upstream = self._upstreams[self._route] = Upstream(route, self._gateway.timeout_s)
        upstream.watch = self._watch
        fields = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in request.headers]
        body, length = (self._body, self._length) if not request.body else ((request.body,), len(request.body))
        answer: Answer
        try:
            answer = upstream.ask(request.method, request.target, fields, body, length=length)
        except Broken as broken:
            answer = Said(broken.status, broken.words)
        self._look()
        if self._attempt is not None and self._attempt.book is not self._gateway.seam.book:
            raise OSError("the trial has ended")
        return answer

    def _watch(self, service: socket.socket) -> None:
        """Waits until the service says something, and sees the client leave meanwhile.

        Raises:
            TimeoutError: it has been silent for too long.
        """
        ready = readable(service, self._line, within_s=self._gateway.timeout_s)
        if not ready:
            raise TimeoutError
        if self._line in ready:
            self._look()

    def _look(self) -> None:
        """Ends the attempt if the client has left. The service does its work all the same."""
        if self._attempt is not None and not self._attempt.over and hung_up(self._line):
            with self._gateway.lock:
                self._attempt.ended(Seen("left", None, 0))

    def wait(self, delay_s: float) -> bool:
        """Waits until the time is over, or the client hangs up, which is True."""
        clock, began_s = self._gateway.seam.clock, self._gateway.seam.clock.monotonic()
        if readable(self._line, within_s=max(0.0, delay_s)) and hung_up(self._line):
            return True
        clock.sleep(max(0.0, began_s + delay_s - clock.monotonic()))  # it may have sent its next request already
        return False

    def lapse(self) -> None:
        self._lapsed = True

    def _say(self, status: int, words: str) -> None:
        """Answers with the gateway's own words, and nothing comes after."""
        said = Said(status, words)
        body = b"".join(said.parts())
        with suppress(OSError):
            self._line.sendall(spelt(status_line(status), [*said.fields, ("Connection", "close")]) + body)


def hung_up(line: socket.socket) -> bool:
    """True if the other side has closed its connection, or at least its own direction of it."""
    try:
        return not line.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False
    except OSError:
        return True


class _Client:
    """The client of one exchange, and how much of the answer it has taken."""

    def __init__(self, line: socket.socket, attempt: ServiceAttempt, head: Head) -> None:
        self._line, self._attempt, self._head = line, attempt, head
        self._answer: tuple[int, Fields, list[bytes]] | None = None
        self._kept = self._size = 0
        self._stream: StreamView | None = None
        self._now: Callable[[], float] = attempt.clock.monotonic
        self.gone = False

    def send(self, started: list[tuple[str, Fields]], parts: Iterator[bytes]) -> bool:
        """Sends an answer; True if the connection may be used again.

        Raises:
            Failure: the answer breaks off.
            OSError: the client has gone.
        """
        first = next(parts, b"")
        status, given = int(started[0][0][:3]), started[0][1]
        fields = [(name, value) for name, value in given if name.lower() not in HOP_BY_HOP]
        closes = any(name.lower() == "connection" and value == "close" for name, value in given)
        measured = any(name.lower() == "content-length" for name, _ in fields) or status in BODILESS
        bodiless = self._head.words[0] == "HEAD" or status in BODILESS
        chunked = not measured and not bodiless and self._head.words[2] != "HTTP/1.0"
        if chunked:
            fields.append(("Transfer-Encoding", "chunked"))
        elif not measured and not bodiless:
            closes = True
        if closes:
            fields.append(("Connection", "close"))
        head = spelt(status_line(status), fields)
        self._answer = status, given, []
        if is_stream(given):
            self._stream = StreamView(self._attempt.began_s)
        if bodiless:
            self._sent(head, b"")
            for _ in parts:
                pass
            return not closes
        self._sent(head + (chunk(first) if chunked and first else first), first)
        for part in parts:
            if part:
                self._sent(chunk(part) if chunked else part, part)
        if chunked:
            self._line.sendall(b"0\r\n\r\n")
        return not closes

    def _sent(self, data: bytes, part: bytes) -> None:
        try:
            self._line.sendall(data)
        except OSError:
            self.gone = True
            raise
        self._size += len(data)
        assert self._answer is not None
        if self._kept < BODY_MAX:
            self._kept += len(part)
            self._answer[2].append(part)
        if self._stream is not None and part:
            self._stream.took(part, self._now())

    def seen(self, error: str | None) -> Seen:
        """The end of the exchange on the client's side."""
        answer = None
        if self._answer is not None and self._size:
            status, fields, parts = self._answer
            answer = status, fields, b"".join(parts)
        waited = error == "left"
        streamed = self._stream.view(error, self._now(), waited=waited) if self._stream is not None else None
        return Seen(error, answer, self._size, waited, streamed)
