"""The answer stops in its middle, and the connection closes only after a while."""

from collections.abc import Sequence
from dataclasses import dataclass

from chaoslab.base.durations import format_duration
from chaoslab.core.exchange import Arrival, Observation, Toxic
from chaoslab.core.fault import Fault
from chaoslab.faults.network.latency import TIMER_SLACK_S
from chaoslab.faults.network.limit_data import LimitData


@dataclass(frozen=True)
class SlowClose(Fault):
    """Lets `bytes` bytes of the answer through, headers and all, and closes the connection `delay_s` later. The service
    did the work.

    Its client waits all that time for an end that tells it nothing new. A client knows the length of a whole answer and
    does not wait for the close, so an answer that is shorter comes at once, and its trial stays valid.
    """

    delay_s: float = 1.0
    bytes: int = 60
    layer = "wire"
    closes = True
    of_bytes = True
    leaves = "part"
    example = '"slow_close", "weather", delay_s=1.5, chance=0.1'
    source = "https://github.com/Shopify/toxiproxy#slow_close"

    def toxics(self) -> Sequence[Toxic]:
        """The limit comes first: the toxic of that name delays the ends of those before it."""
        limit = LimitData(self.bytes).toxics()
        return (*limit, Toxic("slow_close", "downstream", {"delay_s": self.delay_s}))

    def describe_deviation(self, got: Arrival) -> str:
        waited_s = got.ended_s - sum(got.piece_gaps_s)
        if len(got.whole) > self.bytes and waited_s < self.delay_s - TIMER_SLACK_S:
            return f"closed {format_duration(waited_s)} after the last byte, {format_duration(self.delay_s)} were armed"
        return got.describe_difference(self.bytes)

    def witnessed(self, observation: Observation) -> str | None:
        least_s = min(self.delay_s, observation.deadline_s) - TIMER_SLACK_S
        if observation.duration_s < least_s:
            return None
        if observation.error == "timed_out":
            return f"neither the rest of the answer nor its end within {format_duration(observation.duration_s)}"
        if observation.error not in ("closed", "reset", "garbled"):
            return None
        late = f"at least {format_duration(self.delay_s)} were armed"
        return f"closed in the middle of the answer after {format_duration(observation.duration_s)}, {late}"

    def explain_idle(self, observation: Observation) -> str:
        return LimitData(self.bytes).explain_idle(observation)
