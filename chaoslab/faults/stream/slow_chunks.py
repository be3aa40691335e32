"""The stream comes drop by drop."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from chaoslab.base.durations import format_duration
from chaoslab.core.exchange import Arrival, Call, Flow, Observation, Reply, TrialContext
from chaoslab.core.fault import Fault
from chaoslab.core.pipe import PacedQueue, Signal, Timed
from chaoslab.faults.network.latency import TIMER_SLACK_S

LATENESS = 0.1
"""The share of the time that a first event on a busy machine may be late by, while the last one keeps its time."""


@dataclass(frozen=True)
class SlowChunks(Fault):
    """Lets `delay_s` pass between two events, at least. Each comes within a client's timeout, all together may not."""

    delay_s: float = 0.5
    layer = "stream"
    delays = True
    example = '"slow_chunks", "api.openai.com", delay_s=1.0'
    source = "https://github.com/blazux/qwen3.8-Flash-DGX/issues/9"

    def flow(self, call: Call, context: TrialContext) -> Flow:
        reply: Reply = yield call
        return reply.through(_Slow(self.delay_s))

    def describe_deviation(self, got: Arrival) -> str:
        moments = sorted({at_s for at_s, _ in got.pieces})
        # Pieces that come at one moment were sent at once, whatever the pause was to be.
        if len(moments) < got.parts:
            return f"{got.parts} events came at {len(moments)} moments"
        # Without the first gap: a first event on a busy machine is late, while the second keeps its time.
        least_s = min((later - sooner for sooner, later in pairwise(moments[1:])), default=self.delay_s)
        if least_s < self.delay_s - TIMER_SLACK_S:
            return (
                f"two events came {format_duration(least_s)} apart, at least {format_duration(self.delay_s)} were armed"
            )
        return got.describe_difference()

    def witnessed(self, observation: Observation) -> str | None:
        stream = observation.streamed
        if stream is None or stream.first_byte_s is None or stream.last_byte_s is None:
            return None
        took_s = stream.last_byte_s - stream.first_byte_s
        if stream.ended == "timed_out" and self.delay_s >= stream.silence_s - TIMER_SLACK_S:
            return f"the next event did not come within {format_duration(stream.silence_s)}"
        least_s = (stream.events - 1) * self.delay_s * (1 - LATENESS) - TIMER_SLACK_S
        if stream.events < 2 or took_s < least_s:
            return self._find_burst_evidence(observation, stream.last_byte_s)
        return (
            f"{stream.events} events took {format_duration(took_s)}, one each "
            f"{format_duration(took_s / (stream.events - 1))}"
        )

    @staticmethod
    def _find_burst_evidence(observation: Observation, last_byte_s: float) -> str | None:
        """The evidence of a reader who got all events at once, since another fault had held them back."""
        pipe = observation.changed_reply.pipes[-1].pipe if observation.changed_reply is not None else None
        added_s = pipe.added_s if isinstance(pipe, _Slow) else 0.0
        if added_s <= TIMER_SLACK_S or last_byte_s < added_s * (1 - LATENESS) - TIMER_SLACK_S:
            return None
        arrival_text, least_text = format_duration(last_byte_s), format_duration(added_s)
        return f"held back, the answer came whole after {arrival_text}, at least {least_text} were to pass"


class _Slow(PacedQueue):
    """Keeps a distance between events. `added_s`: the seconds that it has added so far."""

    def __init__(self, delay_s: float) -> None:
        super().__init__(self._delay_event, capacity_bytes=0)
        self.added_s = 0.0
        # Nothing holds the first event back.
        self._delay_s, self._next_s = delay_s, float("-inf")

    def _delay_event(self, timed: Timed, start: float) -> Iterable[Timed]:
        if isinstance(timed.item, Signal):
            return (Timed(start, timed.item),)
        due = max(start, self._next_s)
        self._next_s = due + self._delay_s
        self.added_s += due - start
        return (Timed(due, timed.item),)
