"""The line is slow, so a large answer takes its time."""

from collections.abc import Sequence
from dataclasses import dataclass

from chaoslab.base.durations import format_duration
from chaoslab.core.exchange import Arrival, Observation, Toxic
from chaoslab.core.fault import Fault
from chaoslab.faults.network.latency import TIMER_SLACK_S

TRICKLE_S = 0.1
"""The most seconds that a piece takes: a slow line trickles."""
HEAD_LEAST = len("HTTP/1.1 200 OK\r\n\r\n")
"""The bytes that come before a body, at least: an answer without one is late too."""


@dataclass(frozen=True)
class Bandwidth(Fault):
    """Passes `rate_kb_s` kilobytes (of 1000 bytes) of the answer a second. The headers count too, on the wire."""

    rate_kb_s: int = 1
    layer = "wire"
    of_bytes = True
    delays = True
    bounds = {"rate_kb_s": (1, 10**9)}  # noqa: RUF012 - a trait, which nobody changes
    example = '"bandwidth", "search", rate_kb_s=2'
    source = "https://github.com/Shopify/toxiproxy#bandwidth"

    def _compute_transfer_s(self, size: int) -> float:
        return size / (self.rate_kb_s * 1000)

    def toxics(self) -> Sequence[Toxic]:
        return (Toxic("bandwidth", "downstream", {"rate_kb_s": self.rate_kb_s}),)

    def describe_deviation(self, got: Arrival) -> str:
        size = 0
        for at_s, piece in got.pieces:
            size += len(piece)
            if self._compute_transfer_s(size) > at_s + TIMER_SLACK_S:
                return f"{size} bytes came within {format_duration(at_s)}, at most {self.rate_kb_s} kB/s were armed"
            # At most a tenth of a second's worth, as Toxiproxy sends it; a slower line sends a byte at a time.
            if len(piece) > max(1, int(self.rate_kb_s * 1000 * TRICKLE_S)):
                return f"{len(piece)} bytes came in a piece, more than pass within {format_duration(TRICKLE_S)}"
        return got.describe_difference()

    def witnessed(self, observation: Observation) -> str | None:
        if observation.error == "timed_out":
            return f"the answer was not whole after {format_duration(observation.duration_s)}"
        least_s = self._compute_transfer_s(max(observation.service_bytes_min, HEAD_LEAST))
        if (
            observation.error
            or observation.status is None
            # What takes less than a timer may be off by cannot be told from a line that is not slow.
            or not TIMER_SLACK_S < least_s <= observation.duration_s + TIMER_SLACK_S
        ):
            return None
        return (
            f"took {format_duration(observation.duration_s)} for {observation.body_byte_count} bytes, at most "
            f"{self.rate_kb_s} kB/s were armed"
        )
