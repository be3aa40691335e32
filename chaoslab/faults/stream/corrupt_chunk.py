"""One event of the stream is damaged on its way."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from chaoslab.core.exchange import Call, Flow, Observation, Reply, TrialContext
from chaoslab.core.fault import Fault
from chaoslab.core.pipe import PacedQueue, Signal, Timed
from chaoslab.core.stream import get_event_type, is_json_line, parse_event_json
from chaoslab.faults.stream.cut import EVENTS


@dataclass(frozen=True)
class CorruptChunk(Fault):
    """Cuts the JSON of one event in its middle: of the first one that a client parses after `after_events` events (0:
    drawn, 1 to 8). All others pass. No client parses a `ping`, or an event that has no JSON, such as `[DONE]`."""

    after_events: int = 0
    layer = "stream"
    leaves = "garbage"
    needs = "a streamed reply with more events"
    drawn: ClassVar = {"after_events": EVENTS}
    example = '"corrupt_chunk", "api.openai.com", after_events=3'
    source = "https://github.com/openai/openai-python/issues/2722"

    def flow(self, call: Call, context: TrialContext) -> Flow:
        reply: Reply = yield call
        return reply.through(_Damaging(self.after_events))

    def witnessed(self, observation: Observation) -> str | None:
        stream, changed = observation.streamed, observation.changed_reply
        pipe = changed.pipes[-1].pipe if changed is not None and changed.pipes else None
        position = pipe.place if isinstance(pipe, _Damaging) else None
        if stream is None or position is None or stream.events < position:
            return None
        return f"event {position} came with damaged JSON, and the reader took {stream.events} events"


class _Damaging(PacedQueue):
    """Lets so many events pass, damages the next one that a client parses, and lets the rest pass. `place`: the number
    of the damaged event, from 1; None before there is one."""

    def __init__(self, after_events: int) -> None:
        super().__init__(self._damage_event, capacity_bytes=0)
        self.place: int | None = None
        self._after, self._passed = after_events, 0

    def _damage_event(self, timed: Timed, start: float) -> Iterable[Timed]:
        item = timed.item
        if not isinstance(item, Signal):
            self._passed += 1
            if self.place is None and self._passed > self._after and (damaged := _cut_event_json(item)) != item:
                self.place, item = self._passed, damaged
        return (Timed(start, item),)


def _cut_event_json(event: bytes) -> bytes:
    """The event with half of its JSON; the same one if it has none, or none that could be cut, or if it is a ping."""
    # No SDK looks into a ping, so a ping with damage would count as met by nobody.
    if not isinstance(parse_event_json(event), dict | list) or get_event_type(event) == "ping":
        return event
    if is_json_line(event):
        return event[: max(1, len(event.strip()) // 2)] + b"\n"
    head, match, data = event.partition(b"data:")
    # Spaces and ends of lines are the event's frame, which stays.
    text = data.rstrip(b"\r\n").lstrip()
    return head + match + b" " + text[: max(1, len(text) // 2)] + b"\n\n"
