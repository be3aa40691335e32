"""The process of a service dies at a request, and is up again after some seconds."""

from dataclasses import dataclass
from typing import Literal

from chaoslab.core.exchange import Call, Failure, Flow, Observation, TrialContext
from chaoslab.core.fault import Fault, Outage, OutageCut


@dataclass(frozen=True)
class ServiceDown(Fault):
    """Kills the process when the request arrives, before it did anything: all connections of the service break, and new
    ones are refused for `down_s`, whoever asks.

    `state`: "kept", as in a database that outlives the process; "lost": the process begins anew, which needs a service
    that can be made again, `services={"crm.test": lab.fresh(make_app)}`.
    """

    down_s: float = 2.0
    state: Literal["kept", "lost"] = "kept"
    layer = "tool"
    conditional = True
    of_process = True
    bounds = {"down_s": (0.001, 86400)}  # noqa: RUF012 - a trait, which nobody changes
    example = '"service_down", "crm.test", calls=[2], down_s=5'
    source = "https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#container-restarts"

    def flow(self, call: Call, context: TrialContext) -> Flow:
        raise Failure("reset")
        yield call  # never reached: it makes this a generator

    def outage(self) -> Outage:
        return Outage(self.down_s, lost=self.state == "lost")

    def witnessed(self, observation: Observation) -> str | None:
        if observation.sent is not None:
            return None
        evidence = OutageCut("reset").witnessed(observation)
        return evidence and f"{evidence}, nothing was done"
