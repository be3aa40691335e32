"""The model says nothing."""

from dataclasses import dataclass

from chaoslab.core.answers import AnswerContent
from chaoslab.core.changed_answer import ChangedAnswer


@dataclass(frozen=True)
class EmptyAnswer(ChangedAnswer):
    """Leaves the answer without a text and without a tool call. It ended as usual."""

    leaves = "nothing"
    example = '"empty_answer", "api.openai.com", chance=0.1'
    source = "https://github.com/openai/openai-agents-python/issues/856"

    def change_content(self, content: AnswerContent) -> AnswerContent:
        return AnswerContent("") if content.text or content.calls else content
