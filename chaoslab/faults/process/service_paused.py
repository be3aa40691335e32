"""The process of a service stops for some seconds and goes on, as in a long garbage collection."""

from dataclasses import dataclass, replace

from chaoslab.base.durations import format_duration
from chaoslab.core.exchange import Call, Flow, Observation, TrialContext, Wait
from chaoslab.core.fault import Fault, Outage
from chaoslab.faults.network.latency import TIMER_SLACK_S


@dataclass(frozen=True)
class ServicePaused(Fault):
    """Stops the process when the request arrives. For `paused_s` connections are accepted and nobody is answered; then
    all answers come. An application at work goes on, and its answer is held back. Who gave up before and asked again
    has asked twice."""

    paused_s: float = 5.0
    layer = "tool"
    conditional = True
    delays = True
    dose = "paused_s"
    of_process = True
    bounds = {"paused_s": (0.001, 86400)}  # noqa: RUF012 - a trait, which nobody changes
    example = '"service_paused", "crm.test", calls=[1], paused_s=10'
    source = "https://aws.amazon.com/builders-library/timeouts-retries-and-backoff-with-jitter/"

    def flow(self, call: Call, context: TrialContext) -> Flow:
        yield Wait(self.paused_s)
        return (yield call)

    def outage(self) -> Outage:
        return Outage(self.paused_s, held=lambda left_s: replace(self, paused_s=left_s))

    def witnessed(self, observation: Observation) -> str | None:
        if observation.error == "timed_out":
            return f"no answer within {format_duration(observation.duration_s)}"
        if observation.duration_s < self.paused_s - TIMER_SLACK_S:
            return None
        # Another fault may have broken the connection once the service went on: the wait was met all the same.
        return (
            f"took {format_duration(observation.duration_s)}, of which the service was paused for "
            f"{format_duration(self.paused_s)}"
        )
