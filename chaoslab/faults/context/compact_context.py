"""A summary stands for the older turns and leaves out what was done, as after a careless compaction."""

from collections.abc import Sequence
from dataclasses import dataclass

from chaoslab.core.dialog import MessageUnit, collect_text
from chaoslab.core.exchange import Call, Flow, TrialContext
from chaoslab.core.fault import Fault


@dataclass(frozen=True)
class CompactContext(Fault):
    """Replaces all messages but the newest by one that repeats the user's words: the answers, the calls and their
    results vanish.

    The newest message keeps the results behind it, and the system's messages stay. A request whose older messages are
    all the user's own passes unchanged.
    """

    layer = "context"
    corrupts = "call"
    needs = "an answer or a tool's result before the newest message"
    example = '"compact_context", "api.openai.com", calls=[3]'
    source = "https://github.com/openclaw/openclaw/issues/15854"

    def flow(self, call: Call, context: TrialContext) -> Flow:
        units = call.dialog.group_messages(call.value)
        older = [unit for unit in units if unit.is_removable][:-1]
        texts = [text for unit in older if unit.role == "user" if (text := collect_text(unit.messages[0]))]
        kept_texts = self.select_summary_texts(older, texts)
        if kept_texts is None:
            return (yield call)
        text = "\n".join(["Summary of the conversation so far. The user asked:", *(f"- {line}" for line in kept_texts)])
        summary = MessageUnit("user", [call.dialog.from_user(text)])
        # By identity: two units may say the same.
        gone = {id(unit) for unit in older}
        kept = [summary if unit is older[0] else unit for unit in units if unit is older[0] or id(unit) not in gone]
        return (yield call.with_value(call.dialog.with_message_units(call.value, kept)))

    def select_summary_texts(self, older: Sequence[MessageUnit], texts: list[str]) -> list[str] | None:
        """The lines of the summary, of the user's texts in the older units; None: the request passes unchanged."""
        return texts if any(unit.role != "user" or unit.has_results for unit in older) else None
