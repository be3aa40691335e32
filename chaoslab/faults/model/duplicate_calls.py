"""The model makes the same call several times in one answer."""

from dataclasses import dataclass, replace
from typing import ClassVar

from chaoslab.core.answers import AnswerContent
from chaoslab.core.changed_answer import ChangedAnswer


@dataclass(frozen=True)
class DuplicateCalls(ChangedAnswer):
    """Puts each tool call `times` times into the answer, each with an id of its own. An agent that makes them all has
    each effect as often."""

    times: int = 2
    needs = "a tool call in the model's answer"
    bounds: ClassVar = {"times": (2, 100)}
    example = '"duplicate_calls", "api.openai.com", calls=[1]'
    source = "https://github.com/microsoft/vscode/issues/296449"

    def change_content(self, content: AnswerContent) -> AnswerContent:
        if not content.calls:
            return content
        return replace(content, calls=tuple(call for call in content.calls for _ in range(self.times)))
