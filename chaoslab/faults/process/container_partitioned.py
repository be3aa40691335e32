"""A service's container is taken off its network for some seconds."""

from dataclasses import dataclass, replace

from chaoslab.base.durations import format_duration
from chaoslab.core.exchange import Call, Failure, Flow, Observation, TrialContext
from chaoslab.core.fault import Fault, Outage


@dataclass(frozen=True)
class ContainerPartitioned(Fault):
    """Disconnects the container when the request arrives: its process goes on, and nobody reaches it for
    `partitioned_s`, neither through a proxy nor around it. Then it is connected again, under its old name."""

    partitioned_s: float = 5.0
    layer = "tool"
    conditional = True
    of_process = True
    of_container = True
    bounds = {"partitioned_s": (0.001, 86400)}  # noqa: RUF012 - a trait, which nobody changes
    example = '"container_partitioned", "weather", calls=[1], partitioned_s=3'
    source = "https://docs.docker.com/reference/cli/docker/network/disconnect/"

    def flow(self, call: Call, context: TrialContext) -> Flow:
        raise Failure("closed")
        yield call  # never reached: it makes this a generator

    def outage(self) -> Outage:
        return Outage(self.partitioned_s, deed="partitioned", held=lambda left_s: replace(self, partitioned_s=left_s))

    def witnessed(self, observation: Observation) -> str | None:
        return (
            f"no answer ({observation.error}) after {format_duration(observation.duration_s)}"
            if observation.error
            else None
        )
