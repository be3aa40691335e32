"""A service's container gets a small share of a CPU for some seconds."""

from dataclasses import dataclass, replace

from chaoslab.base.durations import format_duration
from chaoslab.core.exchange import Call, Flow, Observation, TrialContext, Wait
from chaoslab.core.fault import Fault, Outage

PERIOD_S = 0.1
"""The time in which the kernel gives a container its share: who has used it up waits for the next."""


@dataclass(frozen=True)
class ContainerThrottled(Fault):
    """Gives the container `share` of one CPU (0.01 is 1 ms in 100) from the request on, for `throttled_s`. The request
    is answered late, or its caller gives up before."""

    share: float = 0.01
    throttled_s: float = 5.0
    layer = "tool"
    conditional = True
    delays = True
    of_process = True
    of_container = True
    bounds = {"share": (0.01, 1), "throttled_s": (0.001, 86400)}  # noqa: RUF012 - a trait, which nobody changes
    example = '"container_throttled", "weather", calls=[1], share=0.05'
    source = "https://docs.docker.com/engine/containers/resource_constraints/"

    def flow(self, call: Call, context: TrialContext) -> Flow:
        yield Wait(PERIOD_S)
        return (yield call)

    def outage(self) -> Outage:
        return Outage(
            self.throttled_s,
            deed="throttled",
            share=self.share,
            held=lambda left_s: replace(self, throttled_s=left_s),
        )

    def witnessed(self, observation: Observation) -> str | None:
        if observation.error == "timed_out":
            return f"no answer within {format_duration(observation.duration_s)}"
        late = observation.duration_s >= PERIOD_S
        return f"took {format_duration(observation.duration_s)} at {self.share * 100:g} % of a CPU" if late else None
