"""The stream ends in the middle of the answer and says that the model meant it so."""

from dataclasses import dataclass, replace
from typing import ClassVar

from chaoslab.core.answers import AnswerContent, truncate_to_word_share
from chaoslab.core.changed_answer import ChangedAnswer


@dataclass(frozen=True)
class EarlyStop(ChangedAnswer):
    """Keeps a share `part` of a streamed answer's words, and none of its tool calls; of an answer without words, that
    share of its calls. It ends as usual, with `stop`, `end_turn` or `completed`, so no client can tell. A single call
    passes unchanged, and so does a whole answer."""

    part: float = 0.5
    layer = "stream"
    leaves = "part"
    needs = "a streamed answer of several words or several tool calls"
    bounds: ClassVar = {"part": (0.0, 1.0)}
    example = '"early_stop", "api.openai.com", chance=0.1'
    source = "https://github.com/Mintplex-Labs/anything-llm/issues/485"

    def change_content(self, content: AnswerContent) -> AnswerContent:
        if content.text:
            return AnswerContent(truncate_to_word_share(content.text, self.part))
        if len(content.calls) < 2:
            return content
        return replace(
            content, calls=content.calls[: max(1, min(len(content.calls) - 1, int(len(content.calls) * self.part)))]
        )
