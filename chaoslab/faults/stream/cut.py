"""The stream ends too early, as if it had ended as it should."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from chaoslab.base.dice import Dice
from chaoslab.core.context import TrialContext
from chaoslab.core.exchange import Call, Flow, Observation, Reply
from chaoslab.core.fault import Fault
from chaoslab.core.pipe import Line, Signal, Timed
from chaoslab.core.stream import is_done

EVENTS_MAX = 8
"""The most events that pass before a fault whose `after_events` is drawn."""
DONE = b"data: [DONE]\n\n"


def drawn(after_events: int, dice: Dice) -> int:
    """The number of events that pass: the given one, or one from 1 to `EVENTS_MAX` if it is 0."""
    return after_events or dice("after_events").pick(range(1, EVENTS_MAX + 1))


@dataclass(frozen=True)
class Cut(Fault):
    """Ends the body cleanly after `after_events` events (0: drawn, 1 to 8). `ending`: "bare", or "done" for a `[DONE]`.

    A client that does not look for `[DONE]` takes a part for the whole; with one in the end nobody can tell.
    """

    after_events: int = 0
    ending: Literal["bare", "done"] = "bare"
    layer = "stream"
    corrupts = "reply"

    def draw(self, dice: Dice) -> Cut:
        return replace(self, after_events=drawn(self.after_events, dice))

    def flow(self, call: Call, context: TrialContext) -> Flow:
        reply: Reply = yield call
        return reply.through(Line(_Law(self.after_events, done=self.ending == "done"), room_bytes=0))

    def witnessed(self, seen: Observation) -> str | None:
        stream = seen.streamed
        done = self.ending == "done"
        if stream is None or stream.ended != "end" or (stream.events, stream.done) != (self.after_events + done, done):
            return None
        return f"the answer ended after {stream.events} events, {'with' if stream.done else 'without'} [DONE]"


class _Law:
    """Lets so many events pass, then ends the stream."""

    def __init__(self, after_events: int, *, done: bool) -> None:
        self._left, self._done = after_events, done

    def __call__(self, timed: Timed, start: float) -> Iterable[Timed]:
        item = timed.item
        if isinstance(item, Signal) or self._left or (self._done and is_done(item)):
            self._left -= 1
            return (Timed(start, item),)
        end = Timed(start, Signal.END)
        return (Timed(start, DONE), end) if self._done else (end,)
