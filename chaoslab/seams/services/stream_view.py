"""The reader's view of a streamed reply: when its events came, and how it ended."""

from __future__ import annotations

from chaoslab.core.events import CANCELLED
from chaoslab.core.stream import Cutter, Events, Streamed, is_done


class StreamView:
    """A body of server-sent events, or of messages of a WebSocket, as its reader takes it."""

    def __init__(self, began_s: float, events: Cutter | None = None) -> None:
        """`events`: as for `Piped`."""
        self._began_s = self._last_s = began_s
        self._first_s: float | None = None
        self._silence_s, self._size, self._count, self._done = 0.0, 0, 0, False
        self._events = events or Events()

    def took(self, data: bytes, now: float) -> None:
        self._first_s = now if self._first_s is None else self._first_s
        self._silence_s = max(self._silence_s, now - self._last_s)
        self._last_s = now
        self._size += len(data)
        for event in self._events.feed(data):
            self._count += 1
            self._done = self._done or is_done(event)

    def view(self, error: str | None, now: float, *, waited: bool) -> Streamed:
        """The reader's view at the end. `error`: as in `ClientEnd`; `waited`: the reader waited for more."""
        ended = error or "end"
        if error == "left":
            ended = "end" if self._done else "timed_out" if waited else CANCELLED
        silence_s = round(max(self._silence_s, now - self._last_s), 6)
        if self._first_s is None:
            return Streamed(silence_s=silence_s, ended=ended)
        first_s, last_s = round(self._first_s - self._began_s, 6), round(self._last_s - self._began_s, 6)
        return Streamed(first_s, last_s, silence_s, self._count, self._size, self._done, ended)
