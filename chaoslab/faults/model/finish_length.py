"""The answer ends in the middle, since the tokens it may have are used up."""

from dataclasses import dataclass
from typing import ClassVar

from chaoslab.core.answers import AnswerContent, words_cut
from chaoslab.core.changed_answer import ChangedAnswer


@dataclass(frozen=True)
class FinishLength(ChangedAnswer):
    """Keeps a share `part` of the words and gives the format's own reason for an answer that was too long. Tool calls
    are lost."""

    part: float = 0.5
    leaves = "part"
    bounds: ClassVar = {"part": (0.0, 1.0)}
    example = '"finish_length", "api.openai.com", part=0.3'
    source = "https://github.com/agent0ai/agent-zero/issues/1836"

    def changed(self, said: AnswerContent) -> AnswerContent:
        return AnswerContent(words_cut(said.text, self.part), finish="length")
