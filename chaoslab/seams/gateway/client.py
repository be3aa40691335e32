"""The client of one exchange at the gateway: its answer, and how much of it the client has taken."""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections.abc import Callable

from aiohttp.web_protocol import RequestHandler

from chaoslab.core.stream import Parts
from chaoslab.seams.gateway.rewriting import Rewriting
from chaoslab.seams.services.line import Seen
from chaoslab.seams.services.messages import Fields, cutter, is_stream
from chaoslab.seams.services.seam import ServiceAttempt
from chaoslab.seams.services.stream_view import StreamView
from chaoslab.seams.services.web_socket import UPGRADED
from chaoslab.wire.http1 import BODILESS, HOP_BY_HOP, chunk, spelt

AT_ONCE = struct.pack("ii", 1, 0)
"""The value of SO_LINGER with which a connection ends in a reset."""


class Client:
    """The client of one exchange. `half_closed`: it has ended its own direction; `gone`: it takes nothing any more;
    `said_goodbye`: it has ended its WebSocket as it should."""

    def __init__(
        self, line: RequestHandler, attempt: ServiceAttempt, rewriting: Rewriting, *, old: bool, closes: bool
    ) -> None:
        """`old`: it speaks HTTP/1.0; `closes`: nothing comes after this exchange."""
        self._line, self._attempt, self._rewriting, self._old, self._closes = line, attempt, rewriting, old, closes
        self._answer: tuple[int, Fields, list[bytes]] | None = None
        self._kept = self._size = 0
        self._stream: StreamView | None = None
        self._now: Callable[[], float] = attempt.clock.monotonic
        self.half_closed = self.gone = self.said_goodbye = False

    async def send(self, status: int, given: Fields, reason: str, ready: bytes | None, parts: Parts) -> bool:
        """Sends an answer; True if the connection may be used again. `ready`: the beginning of its body; None: the head
        waits for the first part.

        Raises:
            Failure: the answer breaks off.
            OSError: the client has gone.
        """
        method, upgraded = self._attempt.request.method, status == UPGRADED
        if ready is None:
            ready = await parts.take() or b""
        fields, closes, measured = list[tuple[str, str]](), self._closes, False
        for field in given:
            name = field[0].lower()
            closes = closes or (name == "connection" and field[1] == "close")
            measured = measured or name == "content-length"
            if upgraded or name not in HOP_BY_HOP:
                fields.append(field)
        bodiless = method == "HEAD" or status in BODILESS
        chunked = not measured and not bodiless and not self._old and not upgraded
        if chunked:
            fields.append(("Transfer-Encoding", "chunked"))
        elif not measured and not bodiless:
            closes = True
        if closes and not upgraded:
            fields.append(("Connection", "close"))
        head = spelt(f"HTTP/1.1 {status} {reason}", self._rewriting.answered(fields))
        self._answer = status, given, []
        if upgraded or is_stream(given):
            self._stream = StreamView(self._attempt.began_s, cutter(status, given))
        if bodiless:
            await self._sent(head, b"")
            while await parts.take() is not None:
                pass
            return not closes
        await self._sent(head + (chunk(ready) if chunked and ready else ready), ready)
        while (part := await parts.take()) is not None:
            if part:
                await self._sent(chunk(part) if chunked else part, part)
        if chunked:
            await self._sent(b"0\r\n\r\n", b"")
        return not closes

    async def _sent(self, data: bytes, part: bytes) -> None:
        line = self._line.transport
        if line is None or line.is_closing():
            self.gone = True
            raise ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET))
        line.write(data)
        try:
            await self._line._drain_helper()
            if self.half_closed:  # the loop reads no more from it, so it does not notice a reset
                error = line.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                if error:
                    raise ConnectionResetError(error, os.strerror(error))
        except OSError:
            self.gone = True
            raise
        self._size += len(data)
        assert self._answer is not None
        if self._kept < self._attempt.reads and self._answer[0] != UPGRADED:
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
        if error == "left" and self.said_goodbye:
            error = None
        waited = error == "left"
        streamed = self._stream.view(error, self._now(), waited=waited) if self._stream is not None else None
        return Seen(error, answer, self._size, waited, streamed)


def reset(line: RequestHandler) -> None:
    """Ends a connection without a word, as a process that dies does: its client reads a reset."""
    transport = line.transport
    if transport is not None:
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
        transport.abort()
