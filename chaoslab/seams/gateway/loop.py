"""The exchanges that no fault can hit, all in one thread: whole requests and whole answers of moderate size.

A thread for each connection costs more than such an exchange, since Python's threads take turns. All else goes on in a
thread of its own (`connection.py`): a route that a fault can hit, a stream, a large body, a service that has to be
connected to, breaks off or is silent, a client that takes its answer slowly, and what is refused. The connection comes
back when the exchange is over.

A round reads from all connections that have something, writes down in one piece what began and what ended, and only
then sends on what began. So a service is never asked for what is not in the log.
"""

from __future__ import annotations

import selectors
import socket
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from threading import Lock, Thread

from chaoslab.seams.gateway.connection import Connection, hung_up
from chaoslab.seams.gateway.shared import Gateway
from chaoslab.seams.gateway.upstream import Upstream
from chaoslab.seams.gateway.whole import AnswerHead, NotForLoop, RequestHead, answer_head, request_head
from chaoslab.seams.services.effects import SAFE
from chaoslab.seams.services.line import Answered, Seen
from chaoslab.seams.services.passed import PassedAttempt, Tell, passed
from chaoslab.wire.http1 import PART_MAX

PARTLY_S = 0.02
"""The longest time for which the loop keeps a part of an answer, in seconds. A thread passes on what comes later."""
KEPT_MAX = 256
"""The most connections to a route's service that are kept between exchanges."""
_READ = selectors.EVENT_READ


class _Client:
    """A client's connection. `head`: the last head that came on it. `paused`: it is not read, since its exchange is not
    over; `gone`: it is not the loop's any more."""

    __slots__ = ("exchange", "gone", "head", "held", "line", "only", "paused")

    def __init__(self, line: socket.socket, only: str, held: bytes) -> None:
        self.line, self.only, self.held, self.paused = line, only, held, False
        self.gone = False
        self.head: RequestHead | None = None
        self.exchange: _Exchange | None = None


class _Kept:
    """A connection to a route's service. `head`: the last head that came on it."""

    __slots__ = ("exchange", "head", "held", "line", "route")

    def __init__(self, line: socket.socket, route: str) -> None:
        self.line, self.route, self.held = line, route, b""
        self.head: AnswerHead | None = None
        self.exchange: _Exchange | None = None


class _Exchange:
    """A request that is under way."""

    __slots__ = ("attempt", "client", "deadline_s", "head")

    def __init__(self, client: _Client, attempt: PassedAttempt, head: RequestHead) -> None:
        self.client, self.attempt, self.head, self.deadline_s = client, attempt, head, 0.0


class Loop:
    """The loop of a gateway, in a thread of its own from `start` to `end`."""

    def __init__(self, shared: Gateway, tell: Tell) -> None:
        """`tell`: writes events down."""
        self._shared, self._tell, self._now = shared, tell, shared.seam.clock.monotonic
        self._selector = selectors.DefaultSelector()
        self._bell, self._ring = socket.socketpair()
        self._bell.setblocking(False)
        self._ring.setblocking(False)
        self._selector.register(self._bell, _READ, None)
        self._given: deque[tuple[socket.socket, str, bytes, Mapping[str, socket.socket]]] = deque()
        self._idle: dict[str, list[_Kept]] = {name: [] for name in shared.routes if shared.passes(name)}
        """The connections between two exchanges, by the routes that are the loop's."""
        self._asked: dict[_Kept, _Exchange] = {}
        """The exchanges whose service was asked, the one that has been silent longest first."""
        self._partly: dict[_Kept, _Exchange] = {}
        """Those of which a part of the answer has come, the earliest first."""
        self._begun: list[_Exchange] = []
        self._told: list[str] = []
        self._ended: list[int] = []
        self._over, self._door = False, Lock()
        self._thread = Thread(target=self._run, name="gateway loop", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        """Closes all connections of the loop."""
        self._over = True
        self._wake()
        self._thread.join()

    def take(self, line: socket.socket, only: str, held: bytes, kept: Mapping[str, socket.socket]) -> bool:
        with self._door:
            if self._over:
                return False
            self._given.append((line, only, held, kept))
        self._wake()
        return True

    def _wake(self) -> None:
        with suppress(OSError):  # it is full: the loop will wake
            self._ring.send(b".")

    def _run(self) -> None:
        try:
            while not self._over:
                self._round()
        finally:
            with self._door:
                self._over = True
            for key in list(self._selector.get_map().values()):
                key.fileobj.close()  # type: ignore[union-attr]
            for exchange in (*self._asked.values(), *self._partly.values(), *self._begun):
                exchange.client.line.close()
            for line, _, _, kept in self._given:
                for each in (line, *kept.values()):
                    each.close()
            self._selector.close()
            self._ring.close()

    def _round(self) -> None:
        wait_s = None
        if self._asked or self._partly:
            first = min(next(iter(some.values())).deadline_s for some in (self._asked, self._partly) if some)
            wait_s = max(0.0, first - self._now())
        for key, _ in self._selector.select(wait_s):
            each = key.data
            if type(each) is _Kept:
                self._answer(each)
            elif type(each) is _Client:
                self._request(each)
            else:
                self._welcome()
        self._write()
        begun, self._begun = self._begun, []
        now = self._now()
        for exchange in begun:
            self._ask(exchange, now)
        while self._asked:
            late, exchange = next(iter(self._asked.items()))
            if exchange.deadline_s > now:
                break
            self._hand_over(exchange, late, error=TimeoutError())
        while self._partly:
            late, exchange = next(iter(self._partly.items()))
            if exchange.deadline_s > now:
                break
            self._hand_over(exchange, late)

    def _note(self, texts: Sequence[str]) -> None:
        self._told += texts

    def _write(self) -> None:
        """Writes down what began and what ended in this round."""
        if self._told:
            told, self._told = self._told, []
            self._tell(told)
        if self._ended:
            ended, self._ended = self._ended, []
            self._shared.over(ended)

    def _welcome(self) -> None:
        """Takes the connections that were given."""
        with suppress(OSError):
            self._bell.recv(PART_MAX)
        while self._given:
            line, only, held, kept = self._given.popleft()
            for name, each in kept.items():
                if name not in self._idle:
                    each.close()
                    continue
                each.setblocking(False)
                one = _Kept(each, name)
                self._selector.register(each, _READ, one)
                self._keep(one)
            line.setblocking(False)
            client = _Client(line, only, held)
            self._selector.register(line, _READ, client)
            if held:
                self._begin(client)

    # A client's side.

    def _request(self, client: _Client) -> None:
        """Reads from a client."""
        if client.gone:  # since this round began
            return
        if client.exchange is not None:  # it goes on before it has its answer, or it has left
            client.paused = True
            self._selector.unregister(client.line)
            if hung_up(client.line):
                self._write()  # it may have begun in this round
                with self._shared.lock:
                    client.exchange.attempt.ended(Seen("left", None, 0))
            return
        try:
            data = client.line.recv(PART_MAX)
        except BlockingIOError:
            return
        except OSError:
            self._drop(client)
            return
        if data:
            client.held = client.held + data if client.held else data
            self._begin(client)
        elif client.held:
            self._to_thread(client)
        else:
            self._drop(client)

    def _begin(self, client: _Client) -> None:
        """Begins the exchange whose request has come, if it is whole."""
        held = client.held
        try:
            head = request_head(held, client.only, client.head)
        except NotForLoop:
            self._to_thread(client)
            return
        if head is None:
            return
        client.head = head
        if head.name not in self._idle:
            self._to_thread(client)
            return
        if len(held) < head.size:
            return
        shared = self._shared
        request, wanted = head.request(held[len(head.text) : head.size])
        with shared.lock:
            if (book := shared.seam.book) is None:
                self._drop(client)
                return
            if head.secrets:
                book.hide(head.secrets)
            attempt = passed(shared.seam, book, head.name, request, self._note, wanted)
        shared.under_way[id(attempt)] = attempt
        client.held = held[head.size :]
        client.exchange = exchange = _Exchange(client, attempt, head)
        self._begun.append(exchange)

    def _drop(self, client: _Client) -> None:
        self._forget(client)
        client.line.close()

    def _forget(self, client: _Client) -> None:
        client.gone = True
        if not client.paused:
            self._selector.unregister(client.line)

    def _to_thread(self, client: _Client) -> None:
        """Lets a thread go on with a client whose exchange has not begun."""
        Thread(target=self._leave(client).serve, daemon=True).start()

    # A service's side.

    def _ask(self, exchange: _Exchange, now: float) -> None:
        """Sends a request over a kept connection, or lets a thread make one."""
        attempt, route = exchange.attempt, self._shared.routes[exchange.attempt.name]
        idle = self._idle[route.name]
        kept = idle.pop() if idle else None
        while kept is not None and attempt.request.method not in SAFE and _stale(kept.line):
            self._close(kept)
            kept = idle.pop() if idle else None
        if kept is None:
            self._hand_over(exchange, None)
            return
        data = exchange.head.sent_to(route) + attempt.request.body
        try:
            sent = kept.line.send(data)
        except BlockingIOError:
            sent = 0
        except OSError as error:
            self._hand_over(exchange, kept, error=error)
            return
        if sent < len(data):
            self._hand_over(exchange, kept, unsent=data[sent:])
            return
        kept.exchange, exchange.deadline_s = exchange, now + self._shared.timeout_s
        self._asked[kept] = exchange

    def _answer(self, kept: _Kept) -> None:
        """Reads from a service."""
        exchange = kept.exchange
        try:
            data = kept.line.recv(PART_MAX)
        except BlockingIOError:
            return
        except OSError as error:
            self._idle_over(kept) if exchange is None else self._hand_over(exchange, kept, error=error)
            return
        if exchange is None:  # it has closed it, or says something that nobody asked for
            self._idle_over(kept)
            return
        held = kept.held = kept.held + data if kept.held else data
        try:
            head = answer_head(held, kept.head) if data else None
            if head is not None and (len(held) > head.size or exchange.attempt.request.method == "HEAD"):
                raise NotForLoop
        except NotForLoop:
            self._hand_over(exchange, kept)
            return
        kept.head = head
        if head is not None and len(held) == head.size:
            self._answered(kept, exchange, head)
        elif not data:
            self._hand_over(exchange, kept)
        elif self._asked.pop(kept, None) is not None:
            exchange.deadline_s = self._now() + PARTLY_S
            self._partly[kept] = exchange

    def _answered(self, kept: _Kept, exchange: _Exchange, head: AnswerHead) -> None:
        """Sends a service's answer to the client."""
        client, attempt, body = exchange.client, exchange.attempt, kept.held[len(head.text) :]
        if self._asked.pop(kept, None) is None:
            del self._partly[kept]
        kept.held, kept.exchange = b"", None
        if head.closes:
            self._close(kept)
        else:
            self._keep(kept)
        if attempt.over:  # the trial has ended, or the client has left and the service did its work all the same
            if self._shared.seam.book is attempt.book:
                attempt.answered(head.status, head.fields, head.said, body)
            self._ended.append(id(attempt))
            self._drop(client)
            return
        attempt.answered(head.status, head.fields, head.said, body)
        seen, data = (head.status, head.fields, body), head.sent + body
        try:
            sent = client.line.send(data)
        except BlockingIOError:
            sent = 0
        except OSError:
            self._end(attempt, Seen("left", None, 0))
            self._drop(client)
            return
        if sent < len(data):
            self._send_rest(exchange, seen, data, sent)
            return
        self._end(attempt, Seen(None, seen, len(data)))
        client.exchange = None
        if client.paused:
            client.paused = False
            self._selector.register(client.line, _READ, client)
        if client.held:
            self._begin(client)

    def _end(self, attempt: PassedAttempt, seen: Seen) -> None:
        with self._shared.lock:
            attempt.ended(seen)
        self._ended.append(id(attempt))

    def _keep(self, kept: _Kept) -> None:
        idle = self._idle[kept.route]
        if len(idle) < KEPT_MAX:
            idle.append(kept)
        else:
            self._close(kept)

    def _idle_over(self, kept: _Kept) -> None:
        self._idle[kept.route].remove(kept)
        self._close(kept)

    def _close(self, kept: _Kept) -> None:
        self._selector.unregister(kept.line)
        kept.line.close()

    # What goes on in a thread.

    def _hand_over(
        self, exchange: _Exchange, kept: _Kept | None, *, unsent: bytes = b"", error: Exception | None = None
    ) -> None:
        """Lets a thread end an exchange. It is in the log already."""
        client, shared = exchange.client, self._shared
        exchange.attempt.tell = self._tell
        upstream = Upstream(shared.routes[exchange.attempt.name], shared.timeout_s)
        if kept is not None:
            self._asked.pop(kept, None)
            self._partly.pop(kept, None)
            self._selector.unregister(kept.line)
            upstream.begun(kept.line, unsent, kept.held, error)
        connection = self._leave(client)
        Thread(target=connection.go_on, args=(exchange.attempt, exchange.head.head, upstream), daemon=True).start()

    def _send_rest(self, exchange: _Exchange, answer: Answered, data: bytes, sent: int) -> None:
        """Lets a thread send the rest of an answer to a client that takes it slowly."""
        attempt = exchange.attempt
        attempt.tell = self._tell
        connection = self._leave(exchange.client)
        Thread(target=connection.send_rest, args=(attempt, answer, data, sent), daemon=True).start()

    def _leave(self, client: _Client) -> Connection:
        """The client's connection for a thread."""
        self._forget(client)
        client.line.setblocking(True)
        return Connection(self._shared, client.line, client.only, client.held)


def _stale(line: socket.socket) -> bool:
    """True if the service has closed its kept connection, or says something that nobody asked for."""
    try:
        line.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True
