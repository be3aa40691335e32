"""The connection closes after some bytes of the answer."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from chaoslab.base.durations import duration
from chaoslab.core.exchange import Call, Failure, Flow, Observation, Reply, Toxic, TrialContext
from chaoslab.core.fault import Fault
from chaoslab.core.pipe import ServedLine, Signal, Timed


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

    def flow(self, call: Call, context: TrialContext) -> Flow:
        reply: Reply = yield call
        if reply.wire_bytes <= self.bytes:
            return reply.through(ServedLine(_Law(self.bytes - reply.wire_bytes), room_bytes=0))
        raise Failure("closed")

    def toxics(self) -> Sequence[Toxic]:
        return (Toxic("limit_data", "downstream", {"bytes": self.bytes}),)

    def witnessed(self, seen: Observation) -> str | None:
        if seen.error not in ("closed", "reset", "garbled"):
            return None
        return f"closed in the middle of the answer after {duration(seen.duration_s)}"

    def idle(self, seen: Observation) -> str:
        if seen.error is not None or seen.status is None or seen.bytes > self.bytes:
            return ""
        return f"nothing to cut: the answer has {seen.bytes} bytes, and {self.bytes} are let through"


class _Law:
    """Lets so many bytes of a stream's body pass, then breaks it off."""

    def __init__(self, left: int) -> None:
        self._left = left

    def __call__(self, timed: Timed, start: float) -> Iterable[Timed]:
        item = timed.item
        if isinstance(item, Signal) or len(item) <= self._left:
            self._left -= 0 if isinstance(item, Signal) else len(item)
            return (Timed(start, item),)
        head = [Timed(start, item[: self._left])] if self._left else []
        return (*head, Timed(start, Signal.RESET))
