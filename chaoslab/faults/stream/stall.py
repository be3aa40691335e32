"""The stream stands still in its middle."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from chaoslab.base.durations import format_duration
from chaoslab.core.exchange import Call, Flow, Observation, Reply, TrialContext, forever
from chaoslab.core.fault import Fault
from chaoslab.core.pipe import PacedQueue, Signal, Timed
from chaoslab.core.stream import is_json_line
from chaoslab.faults.network.latency import TIMER_SLACK_S
from chaoslab.faults.stream.cut import EVENTS


@dataclass(frozen=True)
class Stall(Fault):
    """Holds back the next event after `after_events` events (0: drawn, 1 to 8) for `stall_s`; 0 is for ever.

    The connection stays open. A client without a timeout of its own waits for ever. With `ping_every_s` the provider's
    own sign of life comes so often meanwhile, which a timeout for silence never ends: `ping` of Anthropic, else a
    comment.
    """

    after_events: int = 0
    stall_s: float = 0.0
    ping_every_s: float = 0.0
    layer = "stream"
    drawn: ClassVar = {"after_events": EVENTS}
    example = '"stall", "api.openai.com", after_events=3'
    source = "https://github.com/microsoft/amplifier/issues/339"

    def flow(self, call: Call, context: TrialContext) -> Flow:
        reply: Reply = yield call
        ping = call.dialog.answers.ping
        return reply.through(_Standing(self.after_events, self.stall_s or forever, self.ping_every_s, ping))

    def witnessed(self, observation: Observation) -> str | None:
        stream, changed = observation.streamed, observation.changed_reply
        pipe = changed.pipes[-1].pipe if changed is not None and changed.pipes else None
        if self.ping_every_s and isinstance(pipe, _Standing):
            # A reader may have gone before it took them all.
            ping_count = min(pipe.pings, (stream.events if stream is not None else 0) - self.after_events)
            return (
                f"nothing but {ping_count} signs of life came in the middle of the answer" if ping_count > 0 else None
            )
        if stream is None or stream.silence_s < min(self.stall_s or forever, observation.deadline_s) - TIMER_SLACK_S:
            return None
        return f"nothing came for {format_duration(stream.silence_s)} in the middle of the answer"


class _Standing(PacedQueue):
    """Lets so many events pass at once, and the next one after the stall. `pings`: the signs of life so far."""

    def __init__(self, after_events: int, stall_s: float, every_s: float, ping: bytes) -> None:
        super().__init__(self._stall_event, capacity_bytes=0)
        self.pings = 0
        self._left, self._stall_s, self._every_s, self._ping = after_events, stall_s, every_s, ping

    def _stall_event(self, timed: Timed, start: float) -> Iterable[Timed]:
        if isinstance(timed.item, Signal):
            yield Timed(start, timed.item)
            return
        self._left -= 1
        # At -1 alone: the count goes on below it.
        end_s = start + self._stall_s if self._left == -1 else start
        at_s = start + self._every_s
        # One at a time, since a stall for ever has no last one.
        while self._every_s and at_s < end_s:
            self.pings += 1
            yield Timed(at_s, b"\n" if is_json_line(timed.item) else self._ping)
            at_s += self._every_s
        yield Timed(end_s, timed.item)
