"""The answer is an earlier one, as from a cache that nobody cleared."""

from dataclasses import dataclass
from typing import Any, Literal

from chaoslab.core import json_values
from chaoslab.core.changed_reply import ChangedReply, decode_reply_value, is_same_call, list_answered_calls
from chaoslab.core.exchange import Call, TrialContext


@dataclass(frozen=True)
class Stale(ChangedReply):
    """Lets the work be done and answers with the oldest earlier answer of this trial to the same tool.

    `to` "same": an answer to the same arguments. "any": to any arguments, if there is none to the same. Without an
    earlier answer that differs from the true one there is nothing to change.
    """

    to: Literal["any", "same"] = "any"
    looks_back = True
    needs = "an earlier, different answer of the same tool in its trial"
    example = '"stale", "get_order", chance=0.2'
    source = "https://github.com/esengine/DeepSeek-Reasonix/pull/2955"

    def change_value(self, value: Any, call: Call, context: TrialContext) -> Any:
        earlier = list_answered_calls(call, context)
        same = [exchange for exchange in earlier if is_same_call(exchange[0], call)]
        for _, reply in [*same, *(earlier if self.to == "any" else ())]:
            values = decode_reply_value(reply)
            # As JSON spells them: to Python 1, 1.0 and True are equal.
            if json_values.dump_canonical(values) != json_values.dump_canonical(value):
                return values
        return value
