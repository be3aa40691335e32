"""The user's newest message reaches the model damaged: with typing errors, or cut short."""

import re
from dataclasses import dataclass
from typing import Literal

from chaoslab.core.dialog import map_texts
from chaoslab.core.exchange import Call, Flow, TrialContext
from chaoslab.core.fault import Fault

WORD = re.compile(r"[^\W\d_]{4,}")


@dataclass(frozen=True)
class GarbleInput(Fault):
    """Damages the user's newest message.

    `kind` "typos" swaps two letters inside of every second word of four letters or more, beginning with the first;
    "cut" keeps the first half of the text. Numbers stay whole in "typos". A message with nothing to damage passes
    unchanged.
    """

    kind: Literal["typos", "cut"] = "typos"
    layer = "context"
    corrupts = "call"
    example = '"garble_input", "api.openai.com", kind="cut"'
    source = "https://github.com/earendil-works/pi/issues/5918"

    def flow(self, call: Call, context: TrialContext) -> Flow:
        messages = call.dialog.list_messages(call.value)
        messages_before = [position for position, message in enumerate(messages) if call.dialog.role(message) == "user"]
        if not messages_before:
            return (yield call)
        newest = messages_before[-1]
        changed = map_texts(messages[newest], _keep_first_half if self.kind == "cut" else _add_typos)
        if changed == messages[newest]:
            return (yield call)
        sent = [*messages[:newest], changed, *messages[newest + 1 :]]
        return (yield call.with_value(call.dialog.with_messages(call.value, sent)))


def _keep_first_half(text: str) -> str:
    return text[: (len(text) + 1) // 2]


def _add_typos(text: str) -> str:
    word_matches = list(WORD.finditer(text))[::2]
    for match in word_matches:
        word, start = match[0], match.start()
        for n in range(1, len(word) - 1):
            # Two equal letters would swap into the same word.
            if word[n] != word[n + 1]:
                text = text[:start] + word[:n] + word[n + 1] + word[n] + word[n + 2 :] + text[match.end() :]
                break
    return text
