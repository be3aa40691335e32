"""The answer ends in the middle, since the tokens it may have are used up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chaoslab.core.answers import Answers, Said, words_cut
from chaoslab.core.changed_answer import ChangedAnswer
from chaoslab.core.exchange import Call


@dataclass(frozen=True)
class FinishLength(ChangedAnswer):
    """Keeps a share `part` of the words and gives the format's own reason for an answer that was too long. Tool calls
    are lost."""

    part: float = 0.5
    bounds: ClassVar = {"part": (0.0, 1.0)}
    example = '"finish_length", "api.openai.com", part=0.3'

    def changed(self, said: Said, answers: Answers, call: Call) -> Said:
        return Said(words_cut(said.text, self.part), finish="length")
