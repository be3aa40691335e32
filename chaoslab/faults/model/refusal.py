"""The model refuses politely, though it was asked for nothing wrong."""

from __future__ import annotations

from dataclasses import dataclass

from chaoslab.core.answers import Answers, Said
from chaoslab.core.changed_answer import ChangedAnswer
from chaoslab.core.exchange import Call


@dataclass(frozen=True)
class Refusal(ChangedAnswer):
    """Answers with `text` in place of what the model said, and calls no tool. It ended as usual."""

    text: str = "I'm sorry, but I can't help with that."
    example = '"refusal", "api.openai.com", chance=0.05'

    def changed(self, said: Said, answers: Answers, call: Call) -> Said:
        return Said(self.text)
