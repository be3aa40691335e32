"""A streamed reply on its way to its reader: the parts as they come, through the faults' pipes, each when it is due.
Memory is bounded by the part: while a pipe holds more than its room, nothing is read. A reader that stops ends the
stream upstream."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Any

import httpx

from chaoslab.base.clock import Clock
from chaoslab.core.answers import CHAT_ANSWERS, UNREAD, ReadAnswer
from chaoslab.core.events import CANCELLED, REPLY_MAX
from chaoslab.core.exchange import Failure, Reply
from chaoslab.core.pipe import Signal
from chaoslab.core.stream import BodyParts, EventSplitter, PipedBody, Streamed, is_done_marker, parse_event_json
from chaoslab.wire.http1 import BODY_MAX
from chaoslab.wire.sending import Transport

TIMED_OUT = "timed_out"


class ChatReading:
    """The lab's own reading of a streamed chat completion: its text and its calls up to a bound (`heard`), and its
    usage."""

    def __init__(self) -> None:
        self._events = EventSplitter()
        self.count = 0
        self.done = False
        self.heard = ReadAnswer()
        self.usage: Any = None
        self._full = False

    def feed(self, piece: bytes) -> None:
        for event in self._events.feed(piece):
            self.count += 1
            if is_done_marker(event):
                self.done = True
            # A full reading still looks for the usage, which comes in the last event.
            elif not self._full or b'"usage"' in event:
                with suppress(*UNREAD):  # the reader gets it as it is
                    self._read_chunk(parse_event_json(event))
                self._full = self._full or len(self.heard.rendered_content) >= REPLY_MAX

    def _read_chunk(self, chunk: Any) -> None:
        # Groq sends the usage of a stream in a field of its own.
        self.usage = chunk.get("usage") or (chunk.get("x_groq") or {}).get("usage") or self.usage
        CHAT_ANSWERS.read_event(self.heard, chunk)


class StreamedBody(httpx.AsyncByteStream):
    """The body of a streamed reply as its reader gets it. `silence_s`: the longest time that the reader may wait for a
    part. `began_s`: the attempt's beginning. `over` is called once, when the body has ended, broken off, or been given
    up. `native` makes the reader's own exception."""

    def __init__(
        self,
        reply: Reply,
        *,
        clock: Clock,
        began_s: float,
        silence_s: float,
        over: Callable[[Streamed, Failure | None], object],
        native: Callable[[Failure], Exception],
    ) -> None:
        assert reply.stream is not None
        self.read = ChatReading()
        self._now, self._began_s = clock.monotonic, began_s
        self._over, self._native = over, native
        self._source = (_PipedParts if reply.pipes else _DirectParts)(reply, reply.stream, clock, silence_s)
        self._first_s: float | None = None
        self._last_s: float | None = None
        self._silence_s = 0.0
        self._size = 0
        self._ended = self._closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        failure: Failure | None = None
        ended = CANCELLED
        try:
            while True:
                # The reader's own moment: what it does between two parts is no silence of the stream's.
                asked_s = self._now()
                try:
                    piece = await self._source.next_part(asked_s)
                finally:
                    came_s = self._now()
                    # In a `finally`, since the silence before a failure counts too.
                    self._silence_s = max(self._silence_s, came_s - asked_s)
                if piece is None:
                    ended = "end"
                    return
                self._last_s = came_s
                if self._first_s is None:
                    self._first_s = came_s
                # Before `yield`: a reader that stops at this part has still got it.
                self._size += len(piece)
                self.read.feed(piece)
                yield piece
        except Failure as caught:
            failure, ended = caught, caught.kind
            # In the client's own exception: a failure in mid-stream reaches the program as it would from its SDK.
            raise self._native(caught) from caught.native
        finally:
            await self._end_and_close(ended, failure)

    # Clients close a stream that they have read to its end, too; `_report_end` counts once.
    async def aclose(self) -> None:
        await self._end_and_close(CANCELLED)

    def end_with_trial(self) -> None:
        """Ends the attempt at once, since its trial is over. Its connection is closed when somebody can wait for
        that."""
        self._report_end(CANCELLED, None)

    # Three ways lead here: the end, `aclose`, and the trial's end. The first one counts.
    def _report_end(self, ended: str, failure: Failure | None) -> None:
        if self._ended:
            return
        self._ended = True
        heard = self.read
        if ended == CANCELLED and heard.done:  # nothing was left to read
            ended = "end"
        first_s, last_s = self._get_offset_s(self._first_s), self._get_offset_s(self._last_s)
        silence_s = round(self._silence_s, 6)
        self._over(Streamed(first_s, last_s, silence_s, heard.count, self._size, heard.done, ended), failure)

    def _get_offset_s(self, moment_s: float | None) -> float | None:
        return None if moment_s is None else round(moment_s - self._began_s, 6)

    async def _end_and_close(self, ended: str, failure: Failure | None = None) -> None:
        try:
            # First the record, then the connection: closing may wait, and be cancelled meanwhile.
            self._report_end(ended, failure)
        finally:
            if not self._closed:
                self._closed = True
                await self._source.aclose()


class _DirectParts:
    """The parts as they come."""

    def __init__(self, reply: Reply, parts: BodyParts, clock: Clock, silence_s: float) -> None:  # noqa: ARG002
        self._parts, self._silence_s = parts, silence_s

    async def next_part(self, asked_s: float) -> bytes | None:  # noqa: ARG002 - that is now
        """The next part for a reader who asked at that moment; None at the end."""
        return await _read_part_within(self._parts, self._silence_s)

    async def aclose(self) -> None:
        await self._parts.aclose()


class _PipedParts:
    """The parts through the reply's pipes, event by event."""

    def __init__(self, reply: Reply, parts: BodyParts, clock: Clock, silence_s: float) -> None:
        self._parts, self._clock, self._silence_s = parts, clock, silence_s
        self._line = PipedBody(reply.pipes, clock.monotonic())
        self._reading: asyncio.Future[bytes | None] | None = None
        self._broke: Failure | None = None

    async def next_part(self, asked_s: float) -> bytes | None:
        by_s = asked_s + self._silence_s
        while (item := self._line.poll(now := self._clock.monotonic())) is None:
            if now >= by_s:
                raise Failure("timed_out")
            wake_s = self._line.find_next_due()
            # With its pipes full nothing is read, so that a slow pipe stalls its sender as a slow reader would.
            if not self._line.has_room:
                await self._clock.sleep_async((by_s if wake_s is None else min(wake_s, by_s)) - now)
            else:
                await self._feed_pipes(by_s - now, None if wake_s is None else max(0.0, wake_s - now))
        if item is Signal.END:
            return None
        if isinstance(item, Signal):
            # A break that a pipe passed on is the service's own failure; else the pipe has reset the stream.
            raise self._broke or Failure("reset")
        return item

    async def _feed_pipes(self, left_s: float, within_s: float | None) -> None:
        """Feeds the next part to the pipes. `within_s`: the time until a pipe has something due, if any does."""
        try:
            # Nothing can be due before the next part, so it is awaited without a task, which costs less.
            if within_s is None and self._reading is None:
                piece = await _read_part_within(self._parts, left_s)
            else:  # it goes on being read while a pipe lets something out
                self._reading = self._reading or asyncio.ensure_future(self._parts.read_part())
                wait_s = left_s if within_s is None else min(left_s, within_s)
                if not (await asyncio.wait((self._reading,), timeout=wait_s))[0]:
                    return
                reading, self._reading = self._reading, None
                piece = reading.result()
        except Failure as failure:
            # A deadline ends the attempt at once. Any other break passes through the pipes, which may still hold parts
            # back.
            if failure.kind == TIMED_OUT:
                raise
            piece, self._broke = None, failure
        self._line.feed(piece, self._clock.monotonic(), broke=self._broke is not None)

    async def aclose(self) -> None:
        reading, self._reading = self._reading, None
        if reading is not None:
            reading.cancel()
            # `wait` and not `await`: the cancellation that comes out of it is not ours.
            await asyncio.wait((reading,))
            if not reading.cancelled():
                reading.exception()  # nobody asks for it any more
        await self._parts.aclose()


async def _read_part_within(parts: BodyParts, within_s: float) -> bytes | None:
    try:
        async with asyncio.timeout(within_s):
            return await parts.read_part()
    except TimeoutError:
        raise Failure(TIMED_OUT) from None


class CleanLaneParts:
    """The parts of a reply over a clean lane. `broke` is told of the failure that ends them, before their reader is."""

    def __init__(self, parts: BodyParts, broke: Callable[[Failure], Awaitable[None]]) -> None:
        self._parts, self._broke = parts, broke

    async def read_part(self) -> bytes | None:
        try:
            return await self._parts.read_part()
        except Failure as failure:
            await self._broke(failure)
            raise

    async def aclose(self) -> None:
        await self._parts.aclose()


class LaneParts:
    """The parts of a reply over a lane. `way`: the transport of this call alone, which ends with them; None for a kept
    one."""

    def __init__(self, parts: BodyParts, transport: Transport | None) -> None:
        self._parts, self._way = parts, transport

    async def read_part(self) -> bytes | None:
        return await self._parts.read_part()

    async def aclose(self) -> None:
        # The parts first: a stream that is closed over an open connection can give that back in order.
        try:
            await self._parts.aclose()
        finally:
            if self._way is not None:
                await self._way.aclose()


class KeptParts:
    """Parts that the log keeps, since they could not be made again. `record` is called once with what came, up to the
    bound of a whole body, and with the kind of the failure that ended it, if any."""

    def __init__(self, parts: BodyParts, record: Callable[[bytes, str], None]) -> None:
        self._parts, self._record = parts, record
        self._body = bytearray()
        self._over = False

    async def read_part(self) -> bytes | None:
        try:
            piece = await self._parts.read_part()
        except Failure as failure:
            self._record_body_once(failure.kind)
            raise
        if piece is None:
            self._record_body_once()
        # Up to the bound and no further: the log keeps no more of a reply that is read whole either.
        elif len(self._body) < BODY_MAX:
            self._body += piece
        return piece

    # A reader that stops early leaves a record of what it got.
    async def aclose(self) -> None:
        self._record_body_once()
        await self._parts.aclose()

    def _record_body_once(self, failure: str = "") -> None:
        if not self._over:
            self._over = True
            self._record(bytes(self._body), failure)
