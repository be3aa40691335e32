"""A compaction's summary drops the user's own rule."""

import re
from dataclasses import dataclass

from chaoslab.core.dialog import Unit, collect_text
from chaoslab.core.exchange import Call, Flow, TrialContext
from chaoslab.core.fault import Fault

SENTENCE = re.compile(r"[^.!?\n]+[.!?]*")
RULE = re.compile(
    r"\b(never|don't|do not|must|only|always|unless|without|before you|ask me|at most|(no|not) more than)\b",
    re.IGNORECASE,
)
"""The words of a rule, such as "Do not delete anything before you ask me"."""


@dataclass(frozen=True)
class LostRule(Fault):
    """Replaces all messages but the newest by a summary of the user's words, without the sentences that state a rule
    ("never", "do not", "only", "ask me"). The calls and their results stay, as far as they stand behind the newest.

    `rule`: a part of the sentence to drop, in place of those words. Without such a sentence before the newest message
    the request passes unchanged.
    """

    rule: str = ""
    layer = "context"
    corrupts = "call"
    needs = "a rule in the user's words before the newest message"
    example = '"lost_rule", "api.openai.com", calls=[2]'
    source = "https://github.com/openclaw/openclaw/issues/15854"

    def flow(self, call: Call, context: TrialContext) -> Flow:
        units = call.dialog.units(call.value)
        older = [unit for unit in units if unit.free][:-1]
        sentences = [
            sentence.strip()
            for unit in older
            if unit.role == "user"
            for sentence in SENTENCE.findall(collect_text(unit.messages[0]))
            if sentence.strip()
        ]
        kept = [sentence for sentence in sentences if not self._is_rule(sentence)]
        if len(kept) == len(sentences):
            return (yield call)
        text = "\n".join(["Summary of the conversation so far. The user asked:", *(f"- {each}" for each in kept)])
        summary, gone = Unit("user", [call.dialog.from_user(text)]), {id(unit) for unit in older}
        units_kept = [
            summary if unit is older[0] else unit for unit in units if unit is older[0] or id(unit) not in gone
        ]
        return (yield call.with_value(call.dialog.with_units(call.value, units_kept)))

    def _is_rule(self, sentence: str) -> bool:
        return self.rule in sentence if self.rule else RULE.search(sentence) is not None
