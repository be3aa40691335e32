"""The older turns of a conversation reach the model in the wrong order, as from a history that was sorted wrongly."""

from dataclasses import dataclass
from typing import ClassVar

from chaoslab.core.dialog import MessageUnit
from chaoslab.core.exchange import Call, Flow, TrialContext
from chaoslab.core.fault import Fault


@dataclass(frozen=True)
class ReorderContext(Fault):
    """Moves the older turns: each begins with a message of the user, and the newest stays the last.

    A turn keeps its calls and their results. `point` (0–1) tells how far the turns move; it is drawn. A request with
    fewer than three turns passes unchanged.
    """

    point: float = -1.0
    layer = "context"
    corrupts = "call"
    needs = "three turns or more"
    bounds: ClassVar = {"point": (-1.0, 1.0)}
    drawn: ClassVar = {"point": ()}
    example = '"reorder_context", "api.openai.com", chance=0.2'
    source = "https://github.com/langflow-ai/langflow/issues/7607"

    def flow(self, call: Call, context: TrialContext) -> Flow:
        blocks = _group_turns(call.dialog.group_messages(call.value))
        older = [position for position, block in enumerate(blocks) if block[0].role == "user"][:-1]
        if len(older) < 2:
            return (yield call)
        # At least by one and never full circle, so that the order is another.
        far = 1 + min(int(self.point * (len(older) - 1)), len(older) - 2)
        moved = dict(zip(older, older[far:] + older[:far], strict=True))
        units = [unit for position in range(len(blocks)) for unit in blocks[moved.get(position, position)]]
        changed = call.dialog.with_message_units(call.value, units)
        # Turns that say the same may move and change nothing: that is no fault.
        return (yield call if changed == call.value else call.with_value(changed))


def _group_turns(units: list[MessageUnit]) -> list[list[MessageUnit]]:
    """Turns of the user with the answers behind them; anything else is a block of its own."""
    blocks: list[list[MessageUnit]] = []
    for unit in units:
        if unit.role == "assistant" and blocks and blocks[-1][-1].is_removable:
            blocks[-1].append(unit)
        else:
            blocks.append([unit])
    return blocks
