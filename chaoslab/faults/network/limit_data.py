"""The connection closes after some bytes of the answer."""

from collections.abc import Sequence
from dataclasses import dataclass

from chaoslab.base.durations import format_duration
from chaoslab.core.exchange import Arrival, Observation, Toxic
from chaoslab.core.fault import Fault


@dataclass(frozen=True)
class LimitData(Fault):
    """Closes the connection after `bytes` bytes of the answer, headers and all. The service did the work.

    An answer that is shorter comes whole: there is nothing to cut, and its trial stays valid. By default the headers
    are cut already, so none is.
    """

    bytes: int = 60
    layer = "wire"
    closes = True
    of_bytes = True
    leaves = "part"
    example = '"limit_data", "weather", chance=0.1'
    source = "https://github.com/Shopify/toxiproxy#limit_data"

    def toxics(self) -> Sequence[Toxic]:
        return (Toxic("limit_data", "downstream", {"bytes": self.bytes}),)

    def describe_deviation(self, got: Arrival) -> str:
        return got.describe_difference(self.bytes)

    def witnessed(self, observation: Observation) -> str | None:
        # Cut within its headers, an answer is no HTTP any more: it is garbled to its client.
        if observation.error not in ("closed", "reset", "garbled"):
            return None
        return f"closed in the middle of the answer after {format_duration(observation.duration_s)}"

    def explain_idle(self, observation: Observation) -> str:
        if observation.error is not None or observation.status is None or observation.bytes > self.bytes:
            return ""
        return f"nothing to cut: the answer has {observation.bytes} bytes, and {self.bytes} are let through"
