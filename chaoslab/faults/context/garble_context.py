"""Texts that the model is sent are garbled, as when UTF-8 was read as Latin-1 or the other way round."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from chaoslab.core.dialog import TOOL, map_texts
from chaoslab.core.exchange import Call, Flow, TrialContext
from chaoslab.core.fault import Fault


@dataclass(frozen=True)
class GarbleContext(Fault):
    """Garbles the letters beyond ASCII in the newest messages of the user and of tools.

    `kind` "mojibake" reads UTF-8 as Latin-1 ("é" becomes "Ã©"); "replacement" puts U+FFFD in place of each such letter.
    `part` (0–1, at least one) is the share of the messages with such letters that it garbles. A request without any
    passes unchanged.
    """

    kind: Literal["mojibake", "replacement"] = "mojibake"
    part: float = 1.0
    layer = "context"
    corrupts = "call"
    needs = "letters beyond ASCII in a message of the user or of a tool"
    bounds: ClassVar = {"part": (0.0, 1.0)}
    example = '"garble_context", "api.openai.com", kind="replacement"'
    source = "https://github.com/grebmann1/workbench/issues/55"

    def flow(self, call: Call, context: TrialContext) -> Flow:
        messages = call.dialog.list_messages(call.value)
        garbled: dict[int, Any] = {}
        for position, message in enumerate(messages):
            if (
                call.dialog.role(message) in ("user", TOOL)
                and (changed := map_texts(message, self._garble_text)) != message
            ):
                garbled[position] = changed
        if not garbled:
            return (yield call)
        newest = list(garbled)[-max(1, math.ceil(self.part * len(garbled))) :]
        sent = [garbled[position] if position in newest else message for position, message in enumerate(messages)]
        return (yield call.with_value(call.dialog.with_messages(call.value, sent)))

    def _garble_text(self, text: str) -> str:
        if self.kind == "replacement":
            return "".join(letter if letter.isascii() else "\N{REPLACEMENT CHARACTER}" for letter in text)
        # replace, since half of a surrogate pair, which JSON may hold, has no UTF-8.
        return text.encode("utf-8", "replace").decode("latin-1")
