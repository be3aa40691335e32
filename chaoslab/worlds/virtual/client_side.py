"""The client's side of a connection to a watched service: what the program took there, and how it ended.

The program's own bytes are read, not those that the service sent, so that a fault is witnessed by who met it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from functools import partial

import h11

from chaoslab.seams.service import Answered, Attempt, HttpRequest, Seen, ServiceSeam
from chaoslab.worlds.virtual.machine import Waiter
from chaoslab.worlds.virtual.network import TRIP_S, End

Application = Callable[[str, bytes, Iterable[tuple[bytes, bytes]], bytes], Answered]
"""The function that gives an application's answer to a method, a target, headers and a body."""


class ClientSide:
    """The watcher of the client's end of one connection. `end` is the server's."""

    def __init__(self, end: End, seam: ServiceSeam, name: str, application: Application) -> None:
        self._end, self._seam, self._name, self._application = end, seam, name, application
        self._open: deque[_Exchange] = deque()
        self._how = ""
        self._waiter: Waiter | None = None
        end.peer.watcher = self

    def asked(self, request: h11.Request, body: bytes) -> Attempt | None:
        """The attempt that a request is; None if nobody watches any more."""
        method, target = request.method.decode(), request.target.decode("latin-1")
        attempt = self._seam.asked(self._name, HttpRequest(method, target, list(request.headers), body), self)
        if attempt is not None:
            exchange = _Exchange(attempt)
            if self._how:
                exchange.over(self._how)
            else:
                self._open.append(exchange)
        return attempt

    # The line of an attempt.

    @property
    def trip_s(self) -> float:
        return TRIP_S

    def application(self, request: HttpRequest) -> Answered:
        return self._application(request.method, request.target.encode("latin-1"), request.headers, request.body)

    def wait(self, delay_s: float) -> bool:
        if not self._how:
            machine = self._end.machine
            self._waiter = Waiter(machine)
            self._waiter.park(f"the {delay_s:g} s of a fault", machine.now + delay_s)
            self._waiter = None
        return bool(self._how)

    # What the program observes at its end.

    def took(self, data: bytes) -> None:
        while data and self._open:
            exchange = self._open[0]
            data = exchange.took(data)
            if exchange.whole:
                self._open.popleft()

    def over(self, how: str) -> None:
        if self._how:
            return
        self._how = how
        while self._open:
            self._open.popleft().over(how)
        if self._waiter is not None:
            self._waiter.wake()


class _Exchange:
    """One exchange as a client reads it."""

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt
        self._http = h11.Connection(h11.CLIENT)
        self._http.send(h11.Request(method=attempt.request.method, target="/", headers=[("Host", attempt.name)]))
        self._http.send(h11.EndOfMessage())
        self._status = 0
        self._fields: list[tuple[str, str]] = []
        self._body: list[bytes] = []
        self._bytes = 0
        self.whole = False

    def took(self, data: bytes) -> bytes:
        """Reads bytes; returns those that belong to the next exchange."""
        self._bytes += len(data)
        try:
            self._http.receive_data(data)
            while (event := self._http.next_event()) is not h11.NEED_DATA:
                if isinstance(event, h11.Response):
                    self._status = event.status_code
                    self._fields = [(k.decode("latin-1"), v.decode("latin-1")) for k, v in event.headers.raw_items()]
                elif isinstance(event, h11.Data):
                    self._body.append(bytes(event.data))
                elif isinstance(event, h11.EndOfMessage):
                    self.whole = True
                    rest = self._http.trailing_data[0]
                    self._bytes -= len(rest)
                    self._ended(None)
                    return rest
                elif isinstance(event, h11.ConnectionClosed):
                    break
        except h11.RemoteProtocolError:
            self.whole = True
            self._ended("garbled" if data else "closed")  # the latter: the end came too soon
        return b""

    def over(self, how: str) -> None:
        """Takes the end of the connection. It is also the end of a body whose length nobody stated."""
        if how == "closed":
            self.took(b"")
        if not self.whole:
            self.whole = True
            self._ended(how)

    def _ended(self, error: str | None) -> None:
        answer = (self._status, self._fields, b"".join(self._body)) if self._status else None
        self._attempt.ended(Seen(error, answer, self._bytes))


def gate(seam: ServiceSeam, name: str) -> Callable[[], Callable[[], None] | None]:
    """The decision on a connection to a watched service, for `Network.gates`."""
    return partial(seam.refuses, name, TRIP_S)
