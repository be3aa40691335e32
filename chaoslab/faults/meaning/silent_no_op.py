"""The service does nothing, and answers as if it had."""

from dataclasses import dataclass
from typing import Any

from chaoslab.base.dice import Dice
from chaoslab.core import json_values
from chaoslab.core.changed_reply import (
    decode_reply_value,
    dump_json_like,
    is_model_request,
    list_answered_calls,
    replace_echoed_arguments,
)
from chaoslab.core.exchange import Call, Flow, Observation, TrialContext
from chaoslab.core.fault import Fault
from chaoslab.core.untrue import classify_value, make_untrue_value


@dataclass(frozen=True)
class SilentNoOp(Fault):
    """Does not ask the service and answers with a success, so the effect is missing and nobody reports it.

    The answer is the latest one of this trial to the same tool, with this call's arguments and new ids in it. Before
    there is any, it is {"ok": true} with the arguments, in the type that a function is annotated to return. A model is
    asked as ever.
    """

    layer = "meaning"
    corrupts = "reply"
    of_tools = True
    looks_back = True
    example = '"silent_no_op", "refund", calls=[1]'
    source = "https://github.com/agigante80/actual-mcp-server/issues/350"

    # A model has no effect that could be missing.
    def flow(self, call: Call, context: TrialContext) -> Flow:
        if is_model_request(call):
            return (yield call)
        old_value = list_answered_calls(call, context)
        if not old_value:
            return call.answered_with({"ok": True, **_select_scalar_arguments(call.value)})
        earlier_call, reply = old_value[-1]
        value = decode_reply_value(reply)
        new_value = _replace_unchanged_ids(replace_echoed_arguments(value, earlier_call, call), value, call)
        # JSON in a text stays JSON in a text.
        in_text = isinstance(reply.value, str) and not isinstance(value, str)
        answer = dump_json_like(new_value, reply.value) if in_text else new_value
        # An envelope holds the id of its own request, so it is made anew for this one.
        return call.answered_with(answer) if reply.enveloped else reply.with_value(answer)

    def witnessed(self, observation: Observation) -> str | None:
        if (
            observation.sent is not None
            or observation.reply is None
            or not observation.reply.same_as(observation.changed_reply)
        ):
            return None
        return "a success reached the caller, and the service was not asked"


def _select_scalar_arguments(arguments: Any) -> dict[str, Any]:
    return {str(key): entry for key, entry in json_values.list_entries(arguments) if json_values.is_leaf(entry)}


def _replace_unchanged_ids(value: Any, earlier: Any, call: Call) -> Any:
    """The value with another id in the place of each one that is as it was."""
    for path in json_values.find_leaves(value):
        leaf = json_values.get_at(value, path)
        if classify_value(leaf) == "id" and json_values.dump_canonical(leaf) == json_values.dump_canonical(
            json_values.get_at(earlier, path)
        ):
            new_value = make_untrue_value(leaf, 0.5, Dice("silent_no_op", call.request_id, *path))
            value = json_values.replace_at(value, path, new_value)
    return value
