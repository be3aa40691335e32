"""The model refuses politely, though it was asked for nothing wrong."""

from dataclasses import dataclass

from chaoslab.core.answers import AnswerContent
from chaoslab.core.changed_answer import ChangedAnswer


@dataclass(frozen=True)
class Refusal(ChangedAnswer):
    """Answers with `text` in place of what the model said, and calls no tool. It ended as usual."""

    text: str = "I'm sorry, but I can't help with that."
    example = '"refusal", "api.openai.com", chance=0.05'
    source = "https://github.com/openai/openai-agents-python/issues/3055"

    def change_content(self, content: AnswerContent) -> AnswerContent:
        return AnswerContent(self.text)
