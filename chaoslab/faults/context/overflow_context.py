"""The context is full of text that has nothing to do with the task, as when a tool's long output was kept."""

from dataclasses import dataclass
from itertools import cycle, islice
from typing import ClassVar

from chaoslab.core.dialog import MessageUnit
from chaoslab.core.exchange import Call, Flow, TrialContext
from chaoslab.core.fault import Fault

TEXT = (
    "the harbour was quiet that morning and the small boats lay on the sand while a man in a blue coat counted them "
    "twice and wrote the number on a card that he then put away"
)
"""The filler, over and over."""


@dataclass(frozen=True)
class OverflowContext(Fault):
    """Adds a message of about `tokens` tokens (one for each word) before the user's newest.

    A real model refuses a request beyond its window with a 400, or attends less to what matters. The offline model has
    no window. A request without a message of the user passes unchanged.
    """

    tokens: int = 50_000
    layer = "context"
    corrupts = "call"
    needs = "a message of the user"
    bounds: ClassVar = {"tokens": (1, 1_000_000)}
    example = '"overflow_context", "api.openai.com", tokens=200_000, calls=[2]'
    source = "https://github.com/langroid/langroid/issues/820"

    def flow(self, call: Call, context: TrialContext) -> Flow:
        units = call.dialog.group_messages(call.value)
        messages = [position for position, unit in enumerate(units) if unit.role == "user"]
        if not messages:
            return (yield call)
        filler = call.dialog.from_user(" ".join(islice(cycle(TEXT.split()), self.tokens)))
        units.insert(messages[-1], MessageUnit("user", [filler]))
        return (yield call.with_value(call.dialog.with_message_units(call.value, units)))
