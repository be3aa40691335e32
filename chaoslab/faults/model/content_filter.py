"""The provider holds the answer back for its content."""

from dataclasses import dataclass

from chaoslab.core.answers import AnswerContent
from chaoslab.core.changed_answer import ChangedAnswer


@dataclass(frozen=True)
class ContentFilter(ChangedAnswer):
    """Leaves nothing of the answer and gives the format's own reason for one that was filtered."""

    example = '"content_filter", "api.openai.com", chance=0.05'
    source = "https://learn.microsoft.com/en-us/azure/ai-services/openai/concepts/content-filter"

    def change_content(self, content: AnswerContent) -> AnswerContent:
        return AnswerContent("", finish="content_filter")
