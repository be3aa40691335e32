"""A reply's body in parts: where the parts come from, the pipes that they go through, and the reader's view of them.
Nothing here does I/O or reads a clock. A seam's driver takes the parts as they come, feeds them to the pipes event by
event, and hands on what is due. Amazon's binary streams consist of frames with headers, a payload and two checksums."""

import json
import re
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol
from zlib import crc32

from chaoslab.base.boundary import reraise_unless_foreign
from chaoslab.base.json_text import decode_json, encode_text
from chaoslab.base.values import fixed
from chaoslab.core.pipe import BOUNDLESS, Pipe, Pipeline, Signal, Timed

EVENT_STREAM = "text/event-stream"
IN_LINES = ("application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines")
"""The types of bodies of which each line is JSON."""
EVENT_MAX = 1024 * 1024
"""The most bytes of an event that are held back until it is complete; a longer one passes in pieces."""
EMPTY = b"\n\n"
"""An event without data, which says nothing."""
DONE = b"data: [DONE]\n\n"
_DONE = re.compile(rb"data: ?\[DONE\]\s*")


class BodyParts(Protocol):
    """The body of a streamed reply as it comes."""

    async def read_part(self) -> bytes | None:
        """The next part, which is not empty; None at the end. Raises Failure: the stream broke off."""

    async def aclose(self) -> None:
        """Stops reading; a stream that has not ended is ended upstream. It may be called twice. By default it does
        nothing."""
        return


@fixed(frozen=True)
class Streamed:
    """The reader's view of a streamed body. Times are seconds since the attempt began, None if nothing came.

    `silence_s` is the longest time that the reader waited for a part or for the end. `events` counts the events that
    came complete, `size` the bytes; `done` tells if `[DONE]` was among them. `ended` is "end" (the body ended as it
    should), "cancelled" (the reader stopped), or the kind of a failure.
    """

    first_byte_s: float | None = None
    last_byte_s: float | None = None
    silence_s: float = 0.0
    events: int = 0
    size: int = 0
    done: bool = False
    ended: str = "end"


class BodySplitter(Protocol):
    """Cuts a body into pieces that mean something, whatever parts it comes in."""

    @property
    def rest(self) -> bytes:
        """The beginning of a piece that is not complete."""

    def feed(self, chunk: bytes) -> list[bytes]:
        """The pieces that are complete with this part, in order."""


class EventSplitter:
    """Cuts a body into server-sent events, whatever parts it comes in. An event keeps the blank line that ends it."""

    __slots__ = ("rest",)

    def __init__(self) -> None:
        self.rest = b""
        """The beginning of an event that is not complete."""

    def feed(self, chunk: bytes) -> list[bytes]:
        """The events that are complete with this part, in order."""
        pending = self.rest
        if not pending and 0 <= chunk.find(b"\n\n") == len(chunk) - 2 and b"\r" not in chunk:
            return [chunk]  # the usual case: a server sends event by event
        data, events, begin = pending + chunk, [], 0
        # A blank line of four bytes may have begun in the last three of the bytes before.
        for end in _BLANK_LINE.finditer(data, max(0, len(pending) - 3)):
            events.append(data[begin : end.end()])
            begin = end.end()
        self.rest = data[begin:]
        if len(self.rest) > EVENT_MAX:
            events.append(self.rest)
            self.rest = b""
        return events


class LineSplitter:
    """Cuts a body into lines, each of which is JSON (NDJSON, as Ollama streams it)."""

    def __init__(self) -> None:
        self.rest = b""
        """The beginning of a line that is not complete."""

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that are complete with this part, in order."""
        *lines, self.rest = (self.rest + chunk).splitlines(keepends=True) or [b""]
        if self.rest.endswith(b"\n") or len(self.rest) > EVENT_MAX:
            lines.append(self.rest)
            self.rest = b""
        return lines


_BLANK_LINE = re.compile(rb"\r\n\r\n|\n\n|\r\r")


def is_done_marker(event: bytes) -> bool:
    """Tells if this is `data: [DONE]`, which ends the streams of OpenAI and Groq."""
    # The length first: the pattern would look at every long event.
    return len(event) < 32 and _DONE.fullmatch(event) is not None


def is_json_line(event: bytes) -> bool:
    """True of a line of JSON, which no event begins like."""
    return event.startswith((b"{", b"["))


def get_event_data(event: bytes) -> bytes:
    """The data of an event, or of a line of JSON; empty for `[DONE]`, and for an event without data."""
    if is_json_line(event):
        return event.strip()
    end = len(event) - 2
    if event.startswith(b"data:") and event.find(b"\n") == event.find(b"\n\n") == end and b"\r" not in event:
        data = event[5:].strip()  # the usual case
    else:
        data = b"\n".join(line[5:].strip() for line in event.splitlines() if line.startswith(b"data:"))
    return b"" if data == b"[DONE]" else data


def parse_event_json(event: bytes) -> Any:
    """The JSON of an event; None if it has none."""
    try:
        return decode_json(get_event_data(event))
    except (ValueError, RecursionError):
        return None


def get_event_type(event: bytes) -> str:
    """The `type` of an event's JSON; empty if it has none."""
    value = parse_event_json(event)
    return str(value.get("type", "")) if isinstance(value, dict) else ""


def encode_event(value: Mapping[str, Any]) -> bytes:
    """The event with this JSON. One that has a `type` is named by it, as OpenAI's responses and Anthropic's are."""
    kind = value.get("type")
    named = f"event: {kind}\n" if isinstance(kind, str) else ""
    return encode_text(f"{named}data: {json.dumps(value, ensure_ascii=False)}\n\n")


def _is_blank(timed: Timed) -> bool:
    return isinstance(timed.item, bytes) and not timed.item.strip()


class WatchedPipe:
    """A story's pipe under the lab's eyes: the first time that it lets out something else than went in, or later,
    `on_change` is called. So the lab sees for itself that a stream was changed. `blame` makes the error for a pipe
    that raises.

    `holds`: it holds events back until it knows what to make of them, so that late is no change. Empty events, with
    which it tells its reader that the stream goes on, are none either.
    """

    straight = False

    def __init__(self, pipe: Pipe, *, holds: bool = False) -> None:
        self.pipe, self._holds = pipe, holds
        self._expected: deque[Timed] | None = deque()
        self.on_change: Callable[[], object] = lambda: None
        self.blame: Callable[[BaseException], BaseException] = lambda error: error

    @property
    def held_bytes(self) -> int:
        return self.pipe.held_bytes

    @property
    def held_piece_count(self) -> int:
        return self.pipe.held_piece_count

    @property
    def capacity_bytes(self) -> int:
        return self.pipe.capacity_bytes

    @property
    def piece_interval_s(self) -> float:
        return self.pipe.piece_interval_s

    @property
    def acts_on_silence(self) -> bool:
        return self.pipe.acts_on_silence

    def feed(self, timed: Timed) -> None:
        if self._expected is not None and not (self._holds and _is_blank(timed)):
            self._expected.append(timed)
        self.pipe.feed(timed)

    def poll(self, now: float, count_max: int = BOUNDLESS) -> list[Timed]:
        try:
            out = self.pipe.poll(now, count_max)
        except BaseException as error:
            reraise_unless_foreign(error)
            raise self.blame(error) from error
        if self._expected is not None and self._has_output_changed(self._expected, out, now, count_max):
            self._expected = None
            self.on_change()
        return out

    def _has_output_changed(self, expected: deque[Timed], out: list[Timed], now: float, count_max: int) -> bool:
        for timed in out:
            if self._holds and _is_blank(timed):
                continue
            was = expected.popleft() if expected else None
            if was is None or was.item != timed.item or (was.at != timed.at and not self._holds):
                return True
        return bool(expected) and len(out) < count_max and expected[0].at <= now and not self._holds

    def find_next_due(self) -> float | None:
        try:
            return self.pipe.find_next_due()
        except BaseException as error:
            reraise_unless_foreign(error)
            raise self.blame(error) from error

    def hand_over_items(self, now: float) -> tuple[list[Timed], list[Timed]]:
        return self.pipe.hand_over_items(now)

    def release_all_items(self, now: float) -> list[Timed]:
        return self.pipe.release_all_items(now)


class PipedBody:
    """A body on its way through pipes, event by event. Its owner feeds it parts while it has `has_room`, polls it for
    what is due, and waits until `find_next_due`."""

    def __init__(self, pipes: Sequence[Pipe], now: float, events: BodySplitter | None = None) -> None:
        """`events`: cuts the body into what pipes take; by default, into server-sent events."""
        self._line, self._events, self._over = Pipeline(), events or EventSplitter(), False
        for number, pipe in enumerate(pipes):
            self._line.add(str(number), pipe, now)
        self._room_bytes = max(pipe.capacity_bytes for pipe in pipes)

    @property
    def has_room(self) -> bool:
        """True if the next part may be read: the body goes on, and no more is held than the pipes have room for."""
        return not self._over and self._line.held_bytes <= self._room_bytes

    def feed(self, chunk: bytes | None, now: float, *, broke: bool = False) -> None:
        """Takes in a part, or None for the end. `broke`: it ended too soon."""
        self._over = chunk is None
        # What is left at the end passes too, though it is no whole event.
        for event in self._events.feed(chunk) if chunk is not None else filter(None, [self._events.rest]):
            self._line.feed(Timed(now, event))
        if self._over:
            self._line.feed(Timed(now, Signal.RESET if broke else Signal.END))

    def poll(self, now: float) -> bytes | Signal | None:
        """The next piece that is due, or the signal that ends the body; None if nothing is."""
        due = self._line.poll(now, 1)
        return due[0].item if due else None

    def find_next_due(self) -> float | None:
        """The next moment at which a poll gives something, if no part comes before."""
        return self._line.find_next_due()


FRAMES = "application/vnd.amazon.eventstream"
"""The type of such a body."""
FRAME_MAX = 16 * 1024 * 1024
"""The most bytes of a frame, as Amazon states it. A larger length is no frame's."""
_PRELUDE = 12
"""The lengths of the frame and of its headers, and their checksum, in bytes."""


class FrameSplitter:
    """Cuts a body into frames, whatever parts it comes in."""

    def __init__(self) -> None:
        self.rest = b""
        """The beginning of a frame that is not complete."""

    def feed(self, chunk: bytes) -> list[bytes]:
        """The frames that are complete with this part, in order."""
        data, frames = self.rest + chunk, list[bytes]()
        # 4 at least: a stated length of 0 would never let this loop end.
        while len(data) >= 4 and len(data) >= (size := max(4, int.from_bytes(data[:4], "big"))):
            frames.append(data[:size])
            data = data[size:]
        if len(data) >= 4 and int.from_bytes(data[:4], "big") > FRAME_MAX:  # it is no frame
            frames.append(data)
            data = b""
        self.rest = data
        return frames


def build_frame(kind: str, value: Mapping[str, Any], *, exception: bool = False) -> bytes:
    """An event of this kind with JSON; `exception`: it is an error."""
    kind_name, message_type = (":exception-type", "exception") if exception else (":event-type", "event")
    fields = ((kind_name, kind), (":content-type", "application/json"), (":message-type", message_type))
    headers = b"".join(
        bytes([len(name)]) + name.encode() + b"\x07" + len(field_value).to_bytes(2, "big") + field_value.encode()
        for name, field_value in fields
    )
    payload = json.dumps(value, ensure_ascii=False).encode()
    prelude = (_PRELUDE + len(headers) + len(payload) + 4).to_bytes(4, "big") + len(headers).to_bytes(4, "big")
    body = prelude + crc32(prelude).to_bytes(4, "big") + headers + payload
    return body + crc32(body).to_bytes(4, "big")


def get_frame_payload(event: bytes) -> bytes:
    """The payload of a frame."""
    return event[_PRELUDE + int.from_bytes(event[4:8], "big") : -4]
