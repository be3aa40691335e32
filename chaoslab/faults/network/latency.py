"""The reply arrives late."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from chaoslab.base.dice import Dice
from chaoslab.base.durations import format_duration
from chaoslab.core.exchange import Arrival, Call, Flow, Observation, Toxic, TrialContext, Wait
from chaoslab.core.fault import Fault

Stream = Literal["", "upstream", "downstream"]
"""The direction of a connection; the empty one is drawn."""
STREAMS: tuple[Stream, ...] = ("upstream", "downstream")
TIMER_SLACK_S = 0.002
"""Seconds by which a timer may fire early against another process's clock."""


@dataclass(frozen=True)
class Latency(Fault):
    """Delays the reply by `delay_s` ± `jitter_s` (uniform), or the request if `stream` is upstream. An empty `stream`
    draws the direction."""

    delay_s: float = 0.5
    jitter_s: float = 0.0
    # Not drawn by default: half of the replies came on time then.
    stream: Stream = "downstream"
    layer = "wire"
    delays = True
    dose = "delay_s"
    example = '"latency", "search", delay_s=1.5, jitter_s=0.5'
    source = "https://github.com/Shopify/toxiproxy#latency"

    def draw(self, dice: Dice) -> "Latency":
        jitter_s = dice("jitter").draw_between(-self.jitter_s, self.jitter_s) if self.jitter_s else 0.0
        stream = self.stream or dice("stream").pick(STREAMS)
        # Whole milliseconds, which is what Toxiproxy takes.
        return Latency(max(0.0, round(self.delay_s + jitter_s, 3)), stream=stream)

    def flow(self, call: Call, context: TrialContext) -> Flow:
        if self.stream == "upstream":
            yield Wait(self.delay_s)
            return (yield call)
        reply = yield call
        yield Wait(self.delay_s)
        return reply

    def toxics(self) -> Sequence[Toxic]:
        return (Toxic("latency", self.stream, {"delay_s": self.delay_s}),)

    def describe_deviation(self, got: Arrival) -> str:
        if got.pieces and got.piece_gaps_s[0] < self.delay_s - TIMER_SLACK_S:
            return (
                f"the first bytes came after {format_duration(got.piece_gaps_s[0])}, {format_duration(self.delay_s)} "
                "were armed"
            )
        return got.describe_difference()

    def witnessed(self, observation: Observation) -> str | None:
        # Who gives up before has met the delay all the same.
        least_s = min(self.delay_s, observation.deadline_s) - TIMER_SLACK_S
        if observation.duration_s < least_s or observation.error not in (None, "timed_out"):
            return None
        if observation.duration_s < self.delay_s - TIMER_SLACK_S:
            return (
                f"given up after {format_duration(observation.duration_s)} of the {format_duration(self.delay_s)} that "
                "were armed"
            )
        return f"took {format_duration(observation.duration_s)}, at least {format_duration(self.delay_s)} were armed"
