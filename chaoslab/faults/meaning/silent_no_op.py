"""The service does nothing, and answers as if it had."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from chaoslab.base.dice import Dice
from chaoslab.core import json_values
from chaoslab.core.changed_reply import answered, as_text, of_model
from chaoslab.core.context import TrialContext
from chaoslab.core.exchange import Call, Flow, Observation, Reply
from chaoslab.core.fault import Fault
from chaoslab.core.json_values import Place
from chaoslab.core.untrue import kind, untrue


@dataclass(frozen=True)
class SilentNoOp(Fault):
    """Does not ask the service and answers with a success, so the effect is missing and nobody reports it.

    The answer is the latest one of this trial to the same tool, with this call's arguments and new ids in it. Before
    there is any, it is {"ok": true} with the arguments, in the type that a function is annotated to return. A model is
    asked as ever.
    """

    layer = "meaning"
    corrupts = "reply"
    looks_back = True
    example = '"silent_no_op", "refund", calls=[1]'
    source = "https://github.com/agigante80/actual-mcp-server/issues/350"

    def flow(self, call: Call, context: TrialContext) -> Flow:
        if of_model(call):
            return (yield call)
        earlier = [each.reply for each in context.earlier if each.call.tool == call.tool and each.reply is not None]
        told = answered(call, context)
        if not told:
            return call.answered_with({"ok": True, **_scalars(call.value)})
        was, value = told[-1]
        reply: Reply = next(each for each in reversed(earlier) if each.status < 300 and each.value is not None)
        made = _adapted(value, was, call)
        in_text = isinstance(reply.value, str) and not isinstance(value, str)
        return reply.with_value(as_text(made, reply.value) if in_text else made)

    def witnessed(self, seen: Observation) -> str | None:
        if seen.sent is not None or seen.reply is None or not seen.reply.same_as(seen.changed_reply):
            return None
        return "a success reached the caller, and the service was not asked"


def _scalars(arguments: Any) -> dict[str, Any]:
    return {str(key): held for key, held in json_values.entries(arguments) if json_values.is_leaf(held)}


def _adapted(value: Any, was: Call, call: Call) -> Any:
    """An earlier answer as one to this call: its arguments in the place of those, and other ids."""
    now = dict(json_values.entries(call.value))
    old = {repr(held): now[key] for key, held in json_values.entries(was.value) if key in now}
    for place in json_values.leaves(value):
        held = json_values.at(value, place)
        if repr(held) in old:
            value = json_values.put(value, place, old[repr(held)])
        elif kind(held) == "id":
            value = _with_new_id(value, place, call)
    return value


def _with_new_id(value: Any, place: Place, call: Call) -> Any:
    dice = Dice("silent_no_op", call.request_id, *place)
    return json_values.put(value, place, untrue(json_values.at(value, place), 0.5, dice))
