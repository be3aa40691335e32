"""HTTP/1.1 for the API as an asyncio protocol. Plain requests are read here, all others by h11."""

import asyncio
import re
from collections.abc import Callable, Coroutine
from email.utils import formatdate
from http import HTTPStatus
from typing import Any, cast

import h11

from chaoslab.base.phrases import phrase
from chaoslab.wire.server._spelling import BadTarget
from chaoslab.wire.server.rest import BROWSER, RestRequest, RestResponse

BODY_BYTES_MAX = 1024 * 1024
HEAD_BYTES_MAX = 1024 * 1024 + 4096
AT_ONCE = 8  # the most requests that are answered in one turn of the loop
DRAIN_BYTES_MAX = 64 * 1024 * 1024  # the most that is read of a refused request, so that the refusal is not lost
DRAIN_S = 5.0
CONTINUE = b"100-continue"
LONGEST = 2**63 - 1
CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
HEAD_END = re.compile(rb"\n\r?\n")
LIST_OF_SIZES = re.compile(rb"\ncontent-length:[^\n]*,", re.IGNORECASE)
SPACE_IN_NAME = re.compile(r"illegal header line: bytearray\(b['\"][!-9;-~]+ [!-9;-~ ]*:")
Answer = Callable[[RestRequest], RestResponse | Coroutine[Any, Any, RestResponse]]


class BadRequest(Exception):
    """The data is no valid request. `status`, `more` and `body` make the answer."""

    def __init__(self, status: int, more: str = "", *, body: str = "") -> None:
        super().__init__(status)
        self.status, self.more, self.body = status, more, body


class Dates:
    """The present moment in HTTP's format, made once a second."""

    def __init__(self) -> None:
        self._second, self._text = -1.0, ""

    def now(self) -> str:
        second = asyncio.get_running_loop().time() // 1
        if self._second != second:
            self._second, self._text = second, formatdate(usegmt=True)
        return self._text


class Http(asyncio.Protocol):
    """One client's connection. Its requests are answered one after the other."""

    _transport: asyncio.Transport

    def __init__(self, answer: Answer, connections: "set[Http]", dates: Dates) -> None:
        self._answer = answer
        self._connections = connections
        self._dates = dates
        self._buffer = bytearray()  # not read yet
        self._h11: h11.Connection | None = None  # while it reads
        self._head: h11.Request | None = None
        self._body = bytearray()
        self._looked = 0  # bytes of the buffer that were searched for the end of a head
        self._task: asyncio.Task[None] | None = None
        self._ended = False  # the client has ended its stream
        self._draining: asyncio.TimerHandle | None = None
        self._drained = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is of another class
        self._connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self._connections.discard(self)
        if self._draining is not None:
            self._draining.cancel()

    def data_received(self, data: bytes) -> None:
        if self._draining is not None:
            self._drained += len(data)
            if self._drained > DRAIN_BYTES_MAX:
                self._hang_up()
            return
        self._buffer += data
        self._go_on()

    def eof_received(self) -> bool:
        self._ended = True
        if self._draining is not None:
            self._hang_up()
        else:
            self._go_on()
        return True  # a request that is already here is still answered

    def abort(self) -> None:
        if self._task is not None and self._task is not asyncio.current_task():
            self._task.cancel()
        self._transport.abort()

    def _hang_up(self) -> None:
        self._transport.close()

    def _go_on(self) -> None:
        """Answers the requests in the buffer, a few in each turn of the loop."""
        try:
            for _ in range(AT_ONCE):
                if self._task is not None or self._draining is not None or self._transport.is_closing():
                    return
                request = self._read_plain() if self._h11 is None else self._read()
                if request is None:
                    return
                self._reply_to(request)
        except BadRequest as refusal:
            self._refuse(refusal)
        else:
            asyncio.get_running_loop().call_soon(self._go_on)

    def _read_plain(self) -> RestRequest | None:
        """The next request, or None if it is not all there. One that is not plain goes to h11, with all data behind
        it."""
        if not self._buffer:
            if self._ended:
                self._hang_up()
            return None
        try:
            found = read_plain(self._buffer, body_max=BODY_BYTES_MAX)
        except NotPlain:
            found = None
        else:
            if found is not None:
                request, size = found
                del self._buffer[:size]
                return request
            if not self._ended:
                return None
        self._h11 = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_BYTES_MAX)
        self._head, self._body, self._looked = None, bytearray(), 0
        return self._read()

    def _read(self) -> RestRequest | None:
        """The next request by h11, or None if it is not all there."""
        assert self._h11 is not None
        if self._h11.their_state is h11.IDLE and not self._head_is_whole():
            return None
        if self._buffer:
            data, self._buffer = bytes(self._buffer), bytearray()
            self._h11.receive_data(data)
        if self._ended:
            self._h11.receive_data(b"")
        try:
            return self._next_request(self._h11)
        except h11.RemoteProtocolError as error:
            said = str(error)
            if error.error_status_hint == HTTPStatus.NOT_IMPLEMENTED:
                raise BadRequest(501, body="Unsupported transfer encoding") from None
            if "mandatory Host" in said:
                raise BadRequest(400, ": missing required Host header") from None
            if SPACE_IN_NAME.match(said):
                raise BadRequest(400, ": invalid header name") from None
            raise BadRequest(error.error_status_hint) from None

    def _head_is_whole(self) -> bool:
        """Tells if h11 may read. Heads that Go refuses and h11 takes are recognized only when they are whole."""
        found = HEAD_END.search(self._buffer, max(0, self._looked - 3))
        self._looked = len(self._buffer)
        if (found.start() if found else len(self._buffer)) > HEAD_BYTES_MAX:
            raise BadRequest(431)
        if found and LIST_OF_SIZES.search(self._buffer, 0, found.end()):
            raise BadRequest(400)
        hopeless = bool(self._buffer) and self._buffer[0] <= ord(" ")  # no method begins like this
        return found is not None or self._ended or hopeless

    def _next_request(self, parser: h11.Connection) -> RestRequest | None:
        while True:
            event = parser.next_event()
            if event is h11.NEED_DATA:
                if parser.they_are_waiting_for_100_continue:
                    self._write(parser.send(h11.InformationalResponse(status_code=100, headers=[], reason=b"Continue")))
                return None
            if isinstance(event, h11.Request):
                _check(event)
                self._head = event
            elif isinstance(event, h11.Data):
                self._body += event.data
                if len(self._body) > BODY_BYTES_MAX:
                    raise BadRequest(413)
            elif isinstance(event, h11.EndOfMessage) and self._head is not None:
                agents, hosts, origins = (
                    [value.decode("latin-1") for name, value in self._head.headers if name == field]
                    for field in (b"user-agent", b"host", b"origin")
                )
                agent = next((one for one in agents if one.startswith(BROWSER)), "")
                return RestRequest(
                    self._head.method.decode(), self._head.target.decode(), bytes(self._body), agent,
                    hosts[0] if hosts else None, ", ".join(origins) if origins else None,
                )  # fmt: skip
            else:  # closed by the client, or waiting for our own answer
                self._hang_up()
                return None

    def _reply_to(self, request: RestRequest) -> None:
        """Replies at once if the answer need not wait, as is usual; else in a task."""
        expects = dict(self._head.headers).get(b"expect", CONTINUE) if self._h11 and self._head else CONTINUE
        try:
            if expects.lower() != CONTINUE:
                answer: RestResponse | Coroutine[Any, Any, RestResponse] = RestResponse(
                    417, headers={"Connection": "close"}
                )
            else:
                answer = self._answer(request)
        except BadTarget:
            raise BadRequest(400) from None
        except BaseException:
            self.abort()  # a client that waits forever would hide the bug
            raise
        if isinstance(answer, RestResponse):
            self._reply(request, answer)
        else:
            self._transport.pause_reading()
            self._task = asyncio.get_running_loop().create_task(self._reply_later(request, answer))

    async def _reply_later(self, request: RestRequest, answer: Coroutine[Any, Any, RestResponse]) -> None:
        try:
            response = await answer
        except BaseException:
            self.abort()
            raise
        self._task = None
        if not self._transport.is_closing():
            self._transport.resume_reading()
            self._reply(request, response)
            self._go_on()

    def _reply(self, request: RestRequest, response: RestResponse) -> None:
        if self._h11 is None:
            self._write(spell_plain(response, self._dates.now()))
            return
        self._send(self._h11, response, head_only=request.method == "HEAD")
        if self._h11.our_state is h11.MUST_CLOSE:
            self._hang_up()
            return
        self._buffer[:0] = self._h11.trailing_data[0]
        self._h11 = self._head = None

    def _send(self, parser: h11.Connection, response: RestResponse, *, head_only: bool) -> None:
        headers = [] if response.content_type is None else [("Content-Type", response.content_type)]
        headers += [*response.headers.items(), ("Date", self._dates.now())]
        unsaid = response.status == HTTPStatus.NO_CONTENT or (head_only and not response.body)
        if len(response.body) <= WHOLE_BYTES_MAX and not unsaid and "Content-Length" not in response.headers:
            headers.append(("Content-Length", str(len(response.body))))
        reason = phrase(response.status).encode()
        out = parser.send(h11.Response(status_code=response.status, headers=headers, reason=reason)) or b""
        if head_only:
            out = out.replace(b"Transfer-Encoding: chunked\r\n", b"")  # of a body that is not there
        elif response.body:
            out += parser.send(h11.Data(data=response.body)) or b""
        self._write(out + (parser.send(h11.EndOfMessage()) or b""))

    def _refuse(self, refusal: BadRequest) -> None:
        """Sends the refusal if that is still possible, and hangs up once the client has read it. A socket that is
        closed with unread data resets, and may discard the refusal. So the rest is read and dropped."""
        line = f"{refusal.status} {phrase(refusal.status)}{refusal.more}"
        if self._h11 is None or self._h11.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            head = f"HTTP/1.1 {line}\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"
            self._write((head + (refusal.body or line)).encode())
        self._buffer.clear()
        if self._ended or self._transport.is_closing():
            self._hang_up()
        else:
            self._transport.write_eof()
            self._draining = asyncio.get_running_loop().call_later(DRAIN_S, self._hang_up)

    def _write(self, data: bytes | None) -> None:
        if data:
            self._transport.write(data)


def _check(head: h11.Request) -> None:
    """Raises Refused for a head that Go refuses and h11 takes."""
    if head.http_version not in (b"1.0", b"1.1"):
        raise BadRequest(505, ": unsupported protocol version")
    for name, value in head.headers:
        if CONTROL.search(value):
            raise BadRequest(400)
        if name == b"host" and HOST.fullmatch(value) is None:
            raise BadRequest(400, ": malformed Host header")
        if name == b"content-length":
            if int(value) > LONGEST:
                raise BadRequest(400)
            if int(value) > BODY_BYTES_MAX:
                raise BadRequest(413)


PLAIN_BYTES_MAX = 8192
WHOLE_BYTES_MAX = 2048  # a longer body goes out in chunks, as Go's does
HEAD = re.compile(
    rb"(GET|POST|PATCH|PUT|DELETE) (/[!-~]*) HTTP/1\.1\r\n((?:[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t -~]*\r\n)+)\r\n"
)
HOST = re.compile(rb"[!$%&'()*+,\-.0-9:;=@A-Z\[\]_a-z~]*")  # the bytes that Go allows in a host
SIZE = re.compile(rb"[0-9]{1,7}")
ODD = {b"transfer-encoding", b"expect", b"upgrade", b"trailer"}


class NotPlain(Exception):
    """A request for h11 to read."""


def read_plain(buffer: bytearray, *, body_max: int) -> tuple[RestRequest, int] | None:
    """The first request of the buffer and its size, or None if it is not all there yet. Raises NotPlain: h11 must read
    it. It may be valid or not."""
    end = buffer.find(b"\r\n\r\n", 0, PLAIN_BYTES_MAX)
    head = HEAD.match(buffer) if end >= 0 else None
    if head is None:
        raise NotPlain
    fields: dict[bytes, bytes] = {}
    for line in head[3].split(b"\r\n")[:-1]:
        name, _, value = line.partition(b":")
        name = name.lower()
        if name in fields or name in ODD:
            raise NotPlain
        fields[name] = value.strip(b" \t")
    size = fields.get(b"content-length", b"0")
    if (
        HOST.fullmatch(fields.get(b"host", b"\0")) is None
        or SIZE.fullmatch(size) is None
        or int(size) > body_max
        or fields.get(b"connection", b"keep-alive").lower() != b"keep-alive"
    ):
        raise NotPlain
    whole = head.end() + int(size)
    if len(buffer) < whole:
        return None
    agent, host = fields.get(b"user-agent", b"").decode("latin-1"), fields[b"host"].decode()
    origin = fields[b"origin"].decode("latin-1") if b"origin" in fields else None
    return RestRequest(
        head[1].decode(), head[2].decode(), bytes(buffer[head.end() : whole]), agent, host, origin
    ), whole


def spell_plain(response: RestResponse, date: str) -> bytes:
    """The bytes of an answer to a plain request, the same as h11 would make."""
    lines = [f"HTTP/1.1 {response.status} {phrase(response.status)}"]
    if response.content_type is not None:
        lines.append(f"Content-Type: {response.content_type}")
    lines += [f"{name}: {value}" for name, value in response.headers.items()]
    lines.append(f"Date: {date}")
    body = response.body
    if response.status != HTTPStatus.NO_CONTENT and "Content-Length" not in response.headers:
        if len(body) > WHOLE_BYTES_MAX:
            lines.append("Transfer-Encoding: chunked")
            body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
        else:
            lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "\r\n"]).encode("latin-1") + body
