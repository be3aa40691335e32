"""The stream stands still in its middle."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from chaoslab.base.dice import Dice
from chaoslab.base.durations import duration
from chaoslab.core.context import TrialContext
from chaoslab.core.exchange import Call, Flow, Observation, Reply, forever
from chaoslab.core.fault import Fault
from chaoslab.core.pipe import Line, Signal, Timed
from chaoslab.faults.network.latency import TIMER_SLACK_S
from chaoslab.faults.stream.cut import drawn


@dataclass(frozen=True)
class Stall(Fault):
    """Holds back the next event after `after_events` events (0: drawn, 1 to 8) for `stall_s`; 0 is for ever.

    The connection stays open. A client without a timeout of its own waits for ever.
    """

    after_events: int = 0
    stall_s: float = 0.0
    layer = "stream"
    example = '"stall", "api.openai.com", after_events=3'
    source = "https://github.com/microsoft/amplifier/issues/339"

    def draw(self, dice: Dice) -> Stall:
        return replace(self, after_events=drawn(self.after_events, dice))

    def flow(self, call: Call, context: TrialContext) -> Flow:
        reply: Reply = yield call
        return reply.through(Line(_Law(self.after_events, self.stall_s or forever), room_bytes=0))

    def witnessed(self, seen: Observation) -> str | None:
        stream = seen.streamed
        if stream is None or stream.silence_s < min(self.stall_s or forever, seen.deadline_s) - TIMER_SLACK_S:
            return None
        return f"nothing came for {duration(stream.silence_s)} in the middle of the answer"


class _Law:
    """Lets so many events pass at once, and the next one after the stall."""

    def __init__(self, after_events: int, stall_s: float) -> None:
        self._left, self._stall_s = after_events, stall_s

    def __call__(self, timed: Timed, start: float) -> Iterable[Timed]:
        if isinstance(timed.item, Signal):
            return (Timed(start, timed.item),)
        self._left -= 1
        return (Timed(start + self._stall_s if self._left == -1 else start, timed.item),)
