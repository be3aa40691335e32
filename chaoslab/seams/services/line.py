"""The connection that a request to a service comes on, as a world offers it, the end of an exchange on it, and a
reader's view of a streamed reply."""

from collections.abc import Iterator
from typing import Literal, Protocol

from chaoslab.base.values import fixed
from chaoslab.core.events import CANCELLED
from chaoslab.core.stream import BodyParts, BodySplitter, EventSplitter, Streamed, is_done_marker
from chaoslab.seams.services.messages import Fields, HttpRequest

Step = Literal["lookup", "connection", "handshake"]
"""The steps of making a connection: its name is looked up, it is made, and TLS is agreed on."""
Answered = tuple[int, Fields, bytes]
"""Status, headers and the whole body."""
Started = list[tuple[str, list[tuple[str, str]]]]
"""The status line and the headers of an answer, once the application has stated them."""


@fixed(frozen=True)
class ClientEnd:
    """The end of an exchange on the client's side. `error`: reset, closed, garbled, left (the client hung up before it
    had the whole reply), or None. `answer`: as much as the client took; None before a whole head. `waited`: the client
    waited for more. `streamed`: its view of a stream of events. `gave_up`: if it left, a timeout may be the reason."""

    error: str | None
    answer: Answered | None
    bytes: int
    waited: bool = False
    streamed: Streamed | None = None
    gave_up: bool = True


class AppAnswer(Protocol):
    """An application's answer that has begun."""

    status: int
    fields: list[tuple[str, str]]

    def iterate_parts(self) -> BodyParts:
        """The body as it comes. Its `read_part` raises a `Failure` if the application failed in its middle."""


class Iterated(BodyParts):
    """The body of an answer whose parts are at hand."""

    def __init__(self, parts: Iterator[bytes]) -> None:
        self._left = parts

    async def read_part(self) -> bytes | None:
        return next(self._left, None)


class Line(Protocol):
    """The connection that a request came on, as the world offers it."""

    @property
    def trip_s(self) -> float:
        """The time from one end to the other."""

    @property
    def user_source_line(self) -> str:
        """The line of the user's source that sent the request; empty if it is not known."""

    async def request_service_answer(self, request: HttpRequest) -> AppAnswer:
        """The application's answer to the request."""

    async def wait_unless_client_left(self, delay_s: float) -> bool:
        """Lets time pass; True if the client hung up meanwhile, or before."""

    def end_exchange_as_hang_up(self) -> None:
        """Ends the exchange as if the client had hung up now."""


class StreamView:
    """A body of server-sent events, or of messages of a WebSocket, as its reader takes it."""

    def __init__(self, began_s: float, events: BodySplitter | None = None) -> None:
        """`events`: as for `PipedBody`."""
        self._began_s = self._last_s = began_s
        self._first_s: float | None = None
        self._silence_s, self._size, self._count, self._done = 0.0, 0, 0, False
        self._events = events or EventSplitter()

    def note_part(self, data: bytes, now: float) -> None:
        self._first_s = now if self._first_s is None else self._first_s
        self._silence_s = max(self._silence_s, now - self._last_s)
        self._last_s = now
        self._size += len(data)
        for event in self._events.feed(data):
            self._count += 1
            self._done = self._done or is_done_marker(event)

    def build_stream_summary(self, error: str | None, now: float, *, waited: bool) -> Streamed:
        """The reader's view at the end. `error`: as in `ClientEnd`; `waited`: the reader waited for more."""
        ended = error or "end"
        if error == "left":
            # Whoever has the stream's last event has all of it, though the connection goes on.
            ended = "end" if self._done else "timed_out" if waited else CANCELLED
        # The last silence counts too, up to its end.
        silence_s = round(max(self._silence_s, now - self._last_s), 6)
        if self._first_s is None:
            return Streamed(silence_s=silence_s, ended=ended)
        first_s, last_s = round(self._first_s - self._began_s, 6), round(self._last_s - self._began_s, 6)
        return Streamed(first_s, last_s, silence_s, self._count, self._size, self._done, ended)
