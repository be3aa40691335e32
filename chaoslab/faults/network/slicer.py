"""The answer comes in small pieces, each after a pause."""

from collections.abc import Sequence
from dataclasses import dataclass

from chaoslab.base.durations import format_duration
from chaoslab.core.exchange import Arrival, Observation, Toxic
from chaoslab.core.fault import Fault
from chaoslab.faults.network.latency import TIMER_SLACK_S


@dataclass(frozen=True)
class Slicer(Fault):
    """Cuts the answer into pieces of about `average_bytes` ± `variation_bytes`, each preceded by `pause_s`.

    Toxiproxy's toxic pauses behind each piece, which nobody sees of the last one. So a toxic `latency` of `pause_s`
    goes with it, and an answer of one piece, such as one without a body, is late too.
    """

    average_bytes: int = 64
    variation_bytes: int = 16
    pause_s: float = 0.01
    layer = "wire"
    of_bytes = True
    delays = True
    bounds = {"average_bytes": (1, 10**9)}  # noqa: RUF012 - a trait, which nobody changes
    example = '"slicer", "search", average_bytes=10, pause_s=0.05'
    source = "https://github.com/Shopify/toxiproxy#slicer"

    def _compute_min_time_s(self, size: int) -> float:
        """The pauses of the fewest pieces that so many bytes can have."""
        return max(1, size // (self.average_bytes + self.variation_bytes)) * self.pause_s

    def toxics(self) -> Sequence[Toxic]:
        params = {name: getattr(self, name) for name in ("average_bytes", "variation_bytes", "pause_s")}
        return Toxic("slicer", "downstream", params), Toxic("latency", "downstream", {"delay_s": self.pause_s})

    def describe_deviation(self, got: Arrival) -> str:
        size_max, least_s = self.average_bytes + self.variation_bytes, min(got.piece_gaps_s, default=0.0)
        if size := next((len(piece) for _, piece in got.pieces if len(piece) > size_max), 0):
            return f"a piece has {size} bytes, at most {size_max} were armed"
        if least_s < self.pause_s - TIMER_SLACK_S:
            return f"a piece came after {format_duration(least_s)}, at least {format_duration(self.pause_s)} were armed"
        return got.describe_difference()

    def witnessed(self, observation: Observation) -> str | None:
        if observation.error == "timed_out":
            return f"the answer was not whole after {format_duration(observation.duration_s)}"
        least_s = self._compute_min_time_s(observation.service_bytes_min)
        if (
            observation.error
            or observation.status is None
            or least_s <= TIMER_SLACK_S
            or observation.duration_s < least_s - TIMER_SLACK_S
        ):
            return None
        took_text, least_text = format_duration(observation.duration_s), format_duration(least_s)
        return f"took {took_text} for {observation.body_byte_count} bytes in pieces, at least {least_text} were armed"
