"""The connection is reset in mid-exchange (RST), as by a crashed process or a firewall."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from chaoslab.base.durations import format_duration
from chaoslab.core.exchange import Arrival, Call, Failure, Flow, Observation, Toxic, TrialContext, Wait
from chaoslab.core.fault import Fault
from chaoslab.faults.network.latency import STREAMS, Stream


@dataclass(frozen=True)
class ResetPeer(Fault):
    """Resets the connection `after_s` after the first data of its direction: upstream before the service saw the
    request, downstream after."""

    after_s: float = 0.0
    stream: Stream = ""
    layer = "wire"
    drawn: ClassVar = {"stream": STREAMS}
    example = '"reset_peer", "search", stream="downstream", chance=0.1'
    source = "https://github.com/Shopify/toxiproxy#reset_peer"

    def flow(self, call: Call, context: TrialContext) -> Flow:
        if self.stream == "downstream":
            yield call
        if self.after_s:
            yield Wait(self.after_s)
        raise Failure("reset")

    def toxics(self) -> Sequence[Toxic]:
        return (Toxic("reset_peer", self.stream, {"after_s": self.after_s}),)

    def describe_deviation(self, got: Arrival) -> str:
        return (
            got.describe_difference(0) if got.error == "reset" else f"the end was {got.error or 'closed'}, not a reset"
        )

    def witnessed(self, observation: Observation) -> str | None:
        return (
            f"connection reset after {format_duration(observation.duration_s)}"
            if observation.error == "reset"
            else None
        )
