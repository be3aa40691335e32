"""A message of the user stands twice in what the model is sent, as when two stores of a history are joined."""

from dataclasses import dataclass
from typing import ClassVar

from chaoslab.core.dialog import MessageUnit
from chaoslab.core.exchange import Call, Flow, TrialContext
from chaoslab.core.fault import Fault


@dataclass(frozen=True)
class DuplicateContext(Fault):
    """Repeats one message of the user right before itself.

    `point` (0–1, from the oldest to the newest) picks the message; it is drawn. A call is never repeated, since no
    provider takes the id of a call twice. A request without a message of the user passes unchanged.
    """

    point: float = -1.0
    layer = "context"
    corrupts = "call"
    needs = "a message of the user"
    bounds: ClassVar = {"point": (-1.0, 1.0)}
    drawn: ClassVar = {"point": ()}
    example = '"duplicate_context", "api.openai.com", chance=0.2'
    source = "https://github.com/microsoft/agent-framework/issues/7930"

    def flow(self, call: Call, context: TrialContext) -> Flow:
        units = call.dialog.group_messages(call.value)
        units_before = [position for position, unit in enumerate(units) if unit.role == "user"]
        if not units_before:
            return (yield call)
        # A point of 1 would lie behind the last.
        position = units_before[min(int(self.point * len(units_before)), len(units_before) - 1)]
        copies = {key: value for key, value in units[position].messages[0].items() if key != "id"}
        units.insert(position, MessageUnit("user", [copies]))
        return (yield call.with_value(call.dialog.with_message_units(call.value, units)))
