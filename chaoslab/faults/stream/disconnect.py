"""The connection breaks in the middle of a stream."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from chaoslab.core.exchange import Call, Flow, Observation, Reply, TrialContext
from chaoslab.core.fault import Fault
from chaoslab.core.pipe import PacedQueue, Signal, Timed
from chaoslab.faults.stream.cut import EVENTS


@dataclass(frozen=True)
class Disconnect(Fault):
    """Resets the connection after `after_events` events (0: drawn, 1 to 8). Unlike a `cut`, every client notices."""

    after_events: int = 0
    layer = "stream"
    leaves = "part"
    needs = "a streamed reply with more events"
    drawn: ClassVar = {"after_events": EVENTS}
    example = '"disconnect", "api.openai.com", after_events=3'
    source = "https://github.com/konveyor/kai/issues/622"

    def flow(self, call: Call, context: TrialContext) -> Flow:
        reply: Reply = yield call
        return reply.through(PacedQueue(_Law(self.after_events), capacity_bytes=0))

    def witnessed(self, observation: Observation) -> str | None:
        stream = observation.streamed
        if stream is None or stream.ended not in ("reset", "closed") or stream.events != self.after_events:
            return None
        return f"the connection broke after {stream.events} events"


class _Law:
    """Lets so many events pass, then resets."""

    def __init__(self, after_events: int) -> None:
        self._left = after_events

    def __call__(self, timed: Timed, start: float) -> Iterable[Timed]:
        if self._left or isinstance(timed.item, Signal):
            self._left -= 1
            return (Timed(start, timed.item),)
        return (Timed(start, Signal.RESET),)
