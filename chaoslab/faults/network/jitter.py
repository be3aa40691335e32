"""The delay of a call is another one each time."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from chaoslab.base.dice import Dice
from chaoslab.core.exchange import Arrival, Call, Flow, Observation, Toxic, TrialContext
from chaoslab.core.fault import Fault
from chaoslab.faults.network.latency import STREAMS, Latency, Stream

LEAST_S = 0.005
"""The shortest delay that is drawn: a clock can still tell it from none."""


@dataclass(frozen=True)
class Jitter(Fault):
    """Delays the reply by seconds that are drawn for each call, evenly from 0.005 to `jitter_s`; the request if
    `stream` is upstream. An empty `stream` draws the direction.

    In the record of a call, `jitter_s` is the delay that was drawn.
    `latency` with its `jitter_s` varies around a delay instead.
    """

    jitter_s: float = 0.5
    stream: Stream = "downstream"
    layer = "wire"
    delays = True
    bounds: ClassVar = {"jitter_s": (LEAST_S, 86400.0)}
    example = '"jitter", "search", jitter_s=0.3'
    source = "https://github.com/Shopify/toxiproxy#latency"

    def draw(self, dice: Dice) -> Self:
        # Whole milliseconds, which is what Toxiproxy takes.
        drawn_s = round(dice("jitter").draw_between(LEAST_S, self.jitter_s), 3)
        return replace(self, jitter_s=drawn_s, stream=self.stream or dice("stream").pick(STREAMS))

    @property
    def _latency_fault(self) -> Latency:
        return Latency(self.jitter_s, stream=self.stream)

    def flow(self, call: Call, context: TrialContext) -> Flow:
        return self._latency_fault.flow(call, context)

    def toxics(self) -> Sequence[Toxic]:
        return self._latency_fault.toxics()

    def describe_deviation(self, got: Arrival) -> str:
        return self._latency_fault.describe_deviation(got)

    def witnessed(self, observation: Observation) -> str | None:
        return self._latency_fault.witnessed(observation)
