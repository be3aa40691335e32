"""One event of the stream is damaged on its way."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from chaoslab.base.dice import Dice
from chaoslab.core.context import TrialContext
from chaoslab.core.exchange import Call, Flow, Observation, Reply
from chaoslab.core.fault import Fault
from chaoslab.core.pipe import Line, Signal, Timed
from chaoslab.core.stream import json_of
from chaoslab.faults.stream.cut import drawn


@dataclass(frozen=True)
class CorruptChunk(Fault):
    """Cuts the JSON of one event in its middle, after `after_events` events (0: drawn, 1 to 8). All others pass, and so
    does an event that has no JSON, such as `[DONE]`."""

    after_events: int = 0
    layer = "stream"
    leaves = "garbage"
    needs = "a streamed reply with more events"
    example = '"corrupt_chunk", "api.openai.com", after_events=3'
    source = "https://github.com/openai/openai-python/issues/2722"

    def draw(self, dice: Dice) -> CorruptChunk:
        return replace(self, after_events=drawn(self.after_events, dice))

    def flow(self, call: Call, context: TrialContext) -> Flow:
        reply: Reply = yield call
        return reply.through(Line(_Law(self.after_events), room_bytes=0))

    def witnessed(self, seen: Observation) -> str | None:
        stream = seen.streamed
        if stream is None or stream.events <= self.after_events:
            return None
        return f"event {self.after_events + 1} came with damaged JSON, and the reader took {stream.events} events"


class _Law:
    """Lets so many events pass, damages one, and lets the rest pass."""

    def __init__(self, after_events: int) -> None:
        self._left = after_events

    def __call__(self, timed: Timed, start: float) -> Iterable[Timed]:
        if isinstance(timed.item, Signal):
            return (Timed(start, timed.item),)
        self._left -= 1
        item = _damaged(timed.item) if self._left == -1 else timed.item
        return (Timed(start, item),)


def _damaged(event: bytes) -> bytes:
    """The event with half of its JSON; the same one if it has none, or none that could be cut."""
    if not isinstance(json_of(event), dict | list):
        return event
    head, found, data = event.partition(b"data:")
    text = data.rstrip(b"\r\n").lstrip()
    return head + found + b" " + text[: max(1, len(text) // 2)] + b"\n\n"
