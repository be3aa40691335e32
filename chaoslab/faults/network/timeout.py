"""Nothing arrives any more, and the connection ends after a while or never."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from chaoslab.base.durations import format_duration
from chaoslab.core.exchange import Arrival, Call, Failure, Flow, Observation, Toxic, TrialContext, Wait, forever
from chaoslab.core.fault import Fault
from chaoslab.faults.network.latency import STREAMS, TIMER_SLACK_S, Stream


@dataclass(frozen=True)
class Timeout(Fault):
    """Drops all data of one direction. Closes after `after_s`, or never if it is 0.

    Downstream, the service does the work and only its answer is lost. Upstream, the request never gets there.
    """

    after_s: float = 0.0
    stream: Stream = ""
    layer = "wire"
    unanswered = True
    closes = True
    drawn: ClassVar = {"stream": STREAMS}
    example = '"timeout", "search", after_s=2.0, chance=0.1'
    source = "https://github.com/Shopify/toxiproxy#timeout"

    def flow(self, call: Call, context: TrialContext) -> Flow:
        if self.stream == "downstream":
            yield call
        yield Wait(self.after_s or forever)
        raise Failure("closed")

    def toxics(self) -> Sequence[Toxic]:
        return (Toxic("timeout", self.stream, {"after_s": self.after_s}),)

    def describe_deviation(self, got: Arrival) -> str:
        if got.ended_s < self.after_s - TIMER_SLACK_S or not (self.after_s or got.error == "timed_out"):
            return f"the connection ended after {format_duration(got.ended_s)}"
        return got.describe_difference(0)

    def witnessed(self, observation: Observation) -> str | None:
        if observation.error == "timed_out" and observation.duration_s >= observation.deadline_s - TIMER_SLACK_S:
            return f"no answer within the deadline of {format_duration(observation.deadline_s, 2)}"
        if (
            observation.error in ("closed", "reset")
            and self.after_s
            and observation.duration_s >= self.after_s - TIMER_SLACK_S
        ):
            return f"closed without an answer after {format_duration(observation.duration_s)}"
        return None
