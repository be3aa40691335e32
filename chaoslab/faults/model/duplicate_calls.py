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

    def changed(self, said: AnswerContent) -> AnswerContent:
        if not said.calls:
            return said
        return replace(said, calls=tuple(each for each in said.calls for _ in range(self.times)))
