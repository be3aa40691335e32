"""The connection that a request to a service comes on, as a world offers it, and the end of an exchange on it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, Protocol

from chaoslab.base.values import fixed
from chaoslab.core.stream import Parts, Streamed
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

    async def whole(self) -> Answered:
        """The whole answer."""

    def parts(self) -> Parts:
        """The body as it comes. Its `take` raises a `Failure` if the application failed in its middle."""


class Iterated(Parts):
    """The body of an answer whose parts are at hand."""

    def __init__(self, parts: Iterator[bytes]) -> None:
        self._left = parts

    async def take(self) -> bytes | None:
        return next(self._left, None)


class Line(Protocol):
    """The connection that a request came on, as the world offers it."""

    @property
    def trip_s(self) -> float:
        """The time from one end to the other."""

    async def application(self, request: HttpRequest) -> AppAnswer:
        """The application's answer to the request."""

    async def wait(self, delay_s: float) -> bool:
        """Lets time pass; True if the client hung up meanwhile, or before."""

    def lapse(self) -> None:
        """Ends the exchange as if the client had hung up now."""
