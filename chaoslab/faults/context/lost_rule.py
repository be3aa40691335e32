"""A compaction's summary drops the user's own rule."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from chaoslab.core.dialog import MessageUnit
from chaoslab.faults.context.compact_context import CompactContext

SENTENCE = re.compile(r"[^.!?\n]+[.!?]*")
RULE = re.compile(
    r"\b(never|don't|do not|must|only|always|unless|without|before you|ask me|at most|(no|not) more than)\b",
    re.IGNORECASE,
)
"""The words of a rule, such as "Do not delete anything before you ask me"."""


@dataclass(frozen=True)
class LostRule(CompactContext):
    """Replaces all messages but the newest by a summary of the user's words, without the sentences that state a rule
    ("never", "do not", "only", "ask me"). The calls and their results stay, as far as they stand behind the newest.

    `rule`: a part of the sentence to drop, in place of those words. Without such a sentence before the newest message
    the request passes unchanged.
    """

    rule: str = ""
    needs = "a rule in the user's words before the newest message"
    example = '"lost_rule", "api.openai.com", calls=[2]'

    def select_summary_texts(self, older: Sequence[MessageUnit], texts: list[str]) -> list[str] | None:
        sentences = [text.strip() for each in texts for text in SENTENCE.findall(each) if text.strip()]
        kept = [sentence for sentence in sentences if not self._is_rule(sentence)]
        return kept if len(kept) < len(sentences) else None

    def _is_rule(self, sentence: str) -> bool:
        return self.rule in sentence if self.rule else RULE.search(sentence) is not None
