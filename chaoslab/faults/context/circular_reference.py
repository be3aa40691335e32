"""Two messages refer to each other for what they said, as when a history was shortened to references."""

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from chaoslab.core.dialog import TOOL, collect_text, map_texts
from chaoslab.core.exchange import Call, Flow, TrialContext
from chaoslab.core.fault import Fault


@dataclass(frozen=True)
class CircularReference(Fault):
    """Replaces the words of two neighbours among the user's messages and the results of tools: each says to see the
    other, by its number in the conversation.

    `point` (0–1, from the oldest to the newest) picks the two; it is drawn. The user's newest message stays, and so do
    the system's and the model's. A request with fewer than two such messages passes unchanged.
    """

    point: float = -1.0
    layer = "context"
    corrupts = "call"
    needs = "two messages of the user or of tools before the user's newest"
    bounds: ClassVar = {"point": (-1.0, 1.0)}
    drawn: ClassVar = {"point": ()}
    example = '"circular_reference", "api.openai.com", chance=0.2'
    source = "https://github.com/latitude-dev/latitude-llm/pull/83"

    def flow(self, call: Call, context: TrialContext) -> Flow:
        messages = call.dialog.list_messages(call.value)
        roles = [call.dialog.role(message) for message in messages]
        newest = max((position for position, role in enumerate(roles) if role == "user"), default=-1)
        able = [
            position
            for position, role in enumerate(roles)
            if (role == TOOL or (role == "user" and position != newest)) and collect_text(messages[position])
        ]
        if len(able) < 2:
            return (yield call)
        # A point of 1 would pick the last, which has none behind it.
        first = min(int(self.point * (len(able) - 1)), len(able) - 2)
        first_id, second_id = able[first], able[first + 1]
        for position, ids in ((first_id, second_id), (second_id, first_id)):
            messages[position] = map_texts(messages[position], partial(_make_message_reference, ids + 1))
        return (yield call.with_value(call.dialog.with_messages(call.value, messages)))


def _make_message_reference(number: int, _: str) -> str:
    return f"See message {number}."
