"""Messages in the middle vanish from what the model is sent, as when a history is trimmed carelessly."""

import math
from dataclasses import dataclass
from typing import ClassVar

from chaoslab.core.dialog import MessageUnit
from chaoslab.core.exchange import Call, Flow, TrialContext
from chaoslab.core.fault import Fault


@dataclass(frozen=True)
class DropContext(Fault):
    """Removes a share `part` (0–1, at least one) of the messages between the first and the last, all in a row.

    A call vanishes together with its results. An answer before the gap goes too where a call would else follow it
    directly, which Gemini refuses. `point` (0–1) tells where the gap begins; it is drawn. The first message and the
    system's stay. A request with nothing between its first and its last message passes unchanged.
    """

    part: float = 0.3
    point: float = -1.0
    layer = "context"
    corrupts = "call"
    needs = "a message between the first and the last"
    bounds: ClassVar = {"part": (0.0, 1.0), "point": (-1.0, 1.0)}
    drawn: ClassVar = {"point": ()}
    example = '"drop_context", "api.openai.com", part=0.5, chance=0.2'
    source = "https://github.com/docker/docker-agent/issues/1863"

    def flow(self, call: Call, context: TrialContext) -> Flow:
        units = call.dialog.group_messages(call.value)
        free = [unit for unit in units if unit.is_removable]
        middle = len(free) - 2
        if middle < 1:
            return (yield call)
        count = max(1, math.floor(self.part * middle))
        start = 1 + min(int(self.point * (middle - count + 1)), middle - count)
        end = start + count
        while start > 1 and _is_invalid_pair(free[start - 1], free[end]):
            start -= 1
        if _is_invalid_pair(free[start - 1], free[end]):
            return (yield call)
        gone = {id(unit) for unit in free[start:end]}
        return (
            yield call.with_value(call.dialog.with_message_units(call.value, [u for u in units if id(u) not in gone]))
        )


def _is_invalid_pair(before: MessageUnit, after: MessageUnit) -> bool:
    """True if the second may not follow the first: an answer in words, then another answer."""
    return before.role == after.role == "assistant" and not before.has_results
