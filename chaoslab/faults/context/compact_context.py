"""A summary stands for the older turns and leaves out what was done, as after a careless compaction."""

from dataclasses import dataclass

from chaoslab.core.dialog import Unit, collect_text
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
        units = call.dialog.units(call.value)
        older = [unit for unit in units if unit.free][:-1]
        if not any(unit.role != "user" or unit.calls for unit in older):
            return (yield call)
        prompt_words = [words for unit in older if unit.role == "user" if (words := collect_text(unit.messages[0]))]
        text = "\n".join(
            ["Summary of the conversation so far. The user asked:", *(f"- {words}" for words in prompt_words)]
        )
        summary = Unit("user", [call.dialog.from_user(text)])
        # By identity: two units may say the same.
        gone = {id(unit) for unit in older}
        units_kept = [
            summary if unit is older[0] else unit for unit in units if unit is older[0] or id(unit) not in gone
        ]
        return (yield call.with_value(call.dialog.with_units(call.value, units_kept)))
