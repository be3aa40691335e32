"""The client's side of a connection to a watched service: what the program took there, and how it ended.

The program's own bytes are read, not those that the service sent, so that a fault is witnessed by who met it.
"""

from collections import deque
from collections.abc import Callable, Iterable
from functools import lru_cache, partial

import h11

from chaoslab.base.user_line import find_user_line
from chaoslab.core.fault import BrokenFault
from chaoslab.seams.services.aside import make_service_attempt
from chaoslab.seams.services.line import AppAnswer, ClientEnd, StreamView
from chaoslab.seams.services.messages import Fields, HttpRequest, has_body_in_parts, make_message_splitter
from chaoslab.seams.services.seam import ServiceAttempt, ServiceSeam
from chaoslab.worlds.virtual.machine.machine import Waiter
from chaoslab.worlds.virtual.network.network import TRIP_S, Gate, NetworkEnd

# The most bytes of a head, at either end.
HEAD_MAX = 256 * 1024
Application = Callable[[str, bytes, Iterable[tuple[bytes, bytes]], bytes], AppAnswer]
"""The function that begins an application's answer to a method, a target, headers and a body."""


class ClientSide:
    """The watcher of the client's end of one connection. `end` is the server's."""

    def __init__(self, end: NetworkEnd, seam: ServiceSeam, name: str, application: Application) -> None:
        self._end, self._seam, self._name, self._application = end, seam, name, application
        self._open: deque[_Exchange] = deque()
        self._how = self.user_source_line = ""
        self._waiter: Waiter | None = None
        end.peer.watcher = self
        seam.outages.add_connection(name, self)

    def break_connection(self) -> None:
        """Breaks the connection, as its process's death does: an idle one is closed."""
        if self._open:
            self._end.reset()
        else:
            self._end.close()

    def end_connection_of_killed_client(self) -> None:
        """Ends it as the death of its client does."""
        if self._open:
            self._end.peer.close()
        else:  # a client that a module keeps finds its idle connection ended, in the same moment, and makes another
            self._end.close()
            self._end.peer.ended = True

    def build_attempt(self, request: h11.Request, body: bytes) -> ServiceAttempt | None:
        """The attempt that a request is; None if nobody watches any more."""
        method, target = request.method.decode(), request.target.decode("latin-1")
        if self._seam.turns is not None and self._seam.book is not None and self._name not in self._seam.models:
            self._seam.turns.wait_for_turn(f"{self._name} {method} {target}")
        attempt = make_service_attempt(
            self._seam, self._name, HttpRequest(method, target, list(request.headers), body), self
        )
        if attempt is not None:
            exchange = _Exchange(attempt, self._end.peer)
            # It left while its request was on the way.
            if self._how:
                exchange.handle_end(self._how)
            else:
                self._open.append(exchange)
        return attempt

    # The line of an attempt.

    @property
    def trip_s(self) -> float:
        return TRIP_S

    async def request_service_answer(self, request: HttpRequest) -> AppAnswer:
        return self._application(request.method, request.target.encode("latin-1"), request.headers, request.body)

    async def wait_unless_client_left(self, delay_s: float) -> bool:
        if not self._how:
            machine = self._end.machine
            self._waiter = Waiter(machine)
            self._waiter.park(f"the {delay_s:g} s of a fault", machine.now + delay_s)
            self._waiter = None
        return bool(self._how)

    def end_exchange_as_hang_up(self) -> None:
        if self._open:
            self._open.popleft().handle_end("left")

    def handle_send(self) -> None:
        book = self._seam.book
        if book is not None and book.lines is not None:
            self.user_source_line = find_user_line() or self.user_source_line

    # What the program observes at its end.

    def handle_read(self, data: bytes) -> None:
        while data and self._open:
            exchange = self._open[0]
            # What is behind an answer's end is the next answer, on a kept connection.
            data = exchange.parse_answer_bytes(data)
            if exchange.whole:
                self._open.popleft()

    def handle_timeout(self) -> None:
        for exchange in self._open:
            exchange.attempt.note_client_timeout()

    def handle_end(self, end_kind: str) -> None:
        if self._how:
            return
        self._how = end_kind
        self._seam.outages.remove_connection(self._name, self)
        while self._open:
            self._open.popleft().handle_end(end_kind)
        # A fault holds the answer back, and nobody waits for it any more.
        if self._waiter is not None:
            self._waiter.wake()


class _Exchange:
    """One exchange as a client reads it."""

    def __init__(self, attempt: ServiceAttempt, end: NetworkEnd) -> None:
        self.attempt, self._client, self._machine = attempt, end, end.machine
        self._last_s = attempt.began_s
        self._stream: StreamView | None = None
        self._http = self._build_http_parser()
        self._answer: tuple[int, Fields, list[bytes]] | None = None
        self._bytes = 0
        self.whole = False

    def parse_answer_bytes(self, data: bytes) -> bytes:
        """Reads bytes; returns those that belong to the next exchange."""
        self._bytes += len(data)
        self._last_s = self._machine.now
        return self._parse_bytes(data)

    def _note_answer_head(self, status: int, fields: Fields) -> None:
        self._answer = status, fields, []
        if has_body_in_parts(fields):
            self._stream = StreamView(self.attempt.began_s, make_message_splitter(status, fields))

    def _note_body_part(self, piece: bytes) -> None:
        if self._answer is not None:
            self._answer[2].append(piece)
            if self._stream is not None:
                self._stream.note_part(piece, self._machine.now)

    def _build_http_parser(self) -> h11.Connection:
        http = h11.Connection(h11.CLIENT, max_incomplete_event_size=HEAD_MAX)
        # h11 reads answers to a request; only its method matters, as that of HEAD has no body.
        http.send(_make_h11_request(self.attempt.request.method))
        http.send(_END)
        return http

    def _parse_bytes(self, data: bytes) -> bytes:
        try:
            self._http.receive_data(data)
            while (event := self._http.next_event()) is not h11.NEED_DATA and event is not h11.PAUSED:
                if isinstance(event, h11.Response):
                    fields = [(k.decode("latin-1"), v.decode("latin-1")) for k, v in event.headers.raw_items()]
                    self._note_answer_head(event.status_code, fields)
                elif isinstance(event, h11.Data):
                    self._note_body_part(bytes(event.data))
                elif isinstance(event, h11.EndOfMessage):
                    rest = self._http.trailing_data[0]
                    self._bytes -= len(rest)
                    self._finish_attempt(None)
                    # More than one answer may come in one piece.
                    return rest
        except h11.RemoteProtocolError:
            self._finish_attempt("garbled" if data else "closed")  # the latter: the end came too soon
        return b""

    def handle_end(self, end_kind: str) -> None:
        """Takes the end of the connection. It is also the end of a body whose length nobody stated."""
        if end_kind == "closed" and not self.whole:
            self._parse_bytes(b"")
        if not self.whole:
            self._finish_attempt(end_kind)

    # Before anything is told, since that may end the connection and lead here again.
    def _finish_attempt(self, error: str | None) -> None:
        self.whole, answer = True, None
        if self._answer is not None:
            status, fields, parts = self._answer
            answer = status, fields, b"".join(parts)
        now = self._machine.now
        # It waited for more, unless the end came with the last bytes or more is there to read.
        waited = now > self._last_s and not self._client.has_readable_data()
        streamed = self._stream.build_stream_summary(error, now, waited=waited) if self._stream is not None else None
        gave_up = now == self._machine.lapsed_at or self.attempt.waited_s is not None
        try:
            self.attempt.handle_client_end(ClientEnd(error, answer, self._bytes, waited, streamed, gave_up=gave_up))
        except BrokenFault as broken:  # the program, or its loop, might take it for its own
            self._machine.schedule_now(_raise_error, broken)


# Made once: h11 validates each event, which takes 24 of 37 µs here.
_END = h11.EndOfMessage()


@lru_cache(64)
def _make_h11_request(method: str) -> h11.Request:
    return h11.Request(method=method, target="/", headers=[("Host", "any")])


def _raise_error(error: BaseException) -> None:
    raise error


def make_connection_gate(seam: ServiceSeam, name: str) -> Gate:
    """The decision on a connection to a watched service, for `Network.gates`."""
    return partial(seam.refusals.decide_connection_refusal, name, TRIP_S)
