"""The provider holds the answer back for its content."""

from __future__ import annotations

from dataclasses import dataclass

from chaoslab.core.answers import Answers, Said
from chaoslab.core.changed_answer import ChangedAnswer
from chaoslab.core.exchange import Call


@dataclass(frozen=True)
class ContentFilter(ChangedAnswer):
    """Leaves nothing of the answer and gives the format's own reason for one that was filtered."""

    example = '"content_filter", "api.openai.com", chance=0.05'
    source = "https://learn.microsoft.com/en-us/azure/ai-services/openai/concepts/content-filter"

    def changed(self, said: Said, answers: Answers, call: Call) -> Said:
        return Said("", finish="content_filter")
