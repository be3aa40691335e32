"""The model calls a tool that there is none of."""

from dataclasses import dataclass, replace

from chaoslab.core.answers import AnswerContent
from chaoslab.core.changed_answer import ChangedAnswer


@dataclass(frozen=True)
class UnknownTool(ChangedAnswer):
    """Gives the first tool call the name `called`, or its own with an addition if `called` is empty."""

    called: str = ""
    needs = "a tool call in the model's answer"
    example = '"unknown_tool", "api.openai.com", chance=0.1'
    source = "https://github.com/OpenHands/OpenHands/issues/5111"

    def change_content(self, content: AnswerContent) -> AnswerContent:
        if not content.calls:
            return content
        first, *calls_after = content.calls
        return replace(content, calls=(replace(first, name=self.called or f"{first.name}_v2"), *calls_after))
