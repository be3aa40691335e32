"""`ChangedReply`, the base of faults that make another answer out of a true one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from chaoslab.core import json_values
from chaoslab.core.context import TrialContext
from chaoslab.core.dialog import CHAT
from chaoslab.core.exchange import Call, Flow, Reply
from chaoslab.core.fault import Fault
from chaoslab.core.json_values import Place
from chaoslab.core.untrue import kind


class ChangedReply(Fault):
    """A fault that lets the work be done and changes the value of the answer: a JSON value, a function's result, or
    JSON in a text. Errors, streams and the answers of models pass unchanged, as does an answer without anything to
    change. Then no fault is injected."""

    layer = "meaning"
    corrupts = "reply"

    def flow(self, call: Call, context: TrialContext) -> Flow:
        reply: Reply = yield call
        if not is_answer(reply) or of_model(call):
            return reply
        value = meaning(reply)
        changed = self.changed(value, call, context)
        if changed is value:
            return reply
        in_text = isinstance(reply.value, str) and not isinstance(value, str)
        return reply.with_value(as_text(changed, reply.value) if in_text else changed)

    def changed(self, value: Any, call: Call, context: TrialContext) -> Any:
        """The value that the caller gets. `value` itself if there is nothing to change; it is never altered."""
        raise NotImplementedError


def is_answer(reply: Reply) -> bool:
    """True for a whole reply that has a value and is no error."""
    return reply.status < 300 and getattr(reply, "ok", True) and reply.stream is None and reply.value is not None


def of_model(call: Call) -> bool:
    """True for a request to a model: it has messages, and names the model or is in a format of its own."""
    value = call.value
    if not isinstance(value, Mapping) or not call.dialog.messages(value):
        return False
    return call.dialog is not CHAT or isinstance(value.get("model"), str)


def meaning(reply: Reply) -> Any:
    """The reply's value; of a text that is an object or a list in JSON, these."""
    value = reply.value
    inner = json_values.parsed(value) if isinstance(value, str) else None
    return value if inner is None else inner


def as_text(value: Any, like: str) -> str:
    """The value as JSON in a text that is laid out like another."""
    return json.dumps(value, ensure_ascii=False, default=str, indent=2 if "\n" in like else None)


def asked(call: Call) -> list[Any]:
    """The leaves of the call's arguments: an answer that holds one of them repeats the question."""
    return [json_values.at(call.value, place) for place in json_values.leaves(call.value)]


def told(value: Any, call: Call) -> list[Place]:
    """The places of the values that were asked for: first choice are those that neither repeat an argument nor are a
    flag, an id or a link; without any such, all."""
    repeated = {repr(each) for each in asked(call)}
    every = json_values.leaves(value)
    best = [
        place
        for place in every
        if kind(held := json_values.at(value, place)) not in ("flag", "id", "url") and repr(held) not in repeated
    ]
    return best or [place for place in every if repr(json_values.at(value, place)) not in repeated] or every


def pick(among: list[Any], point: float) -> Any:
    """The entry at a share (0–1) of the list."""
    return among[min(int(point * len(among)), len(among) - 1)]


def answered(call: Call, context: TrialContext) -> list[tuple[Call, Any]]:
    """The earlier calls of the same tool with the meaning of their answers, oldest first. Errors are none."""
    return [
        (each.call, meaning(each.reply))
        for each in context.earlier
        if (each.call.target, each.call.tool) == (call.target, call.tool)
        and each.reply is not None
        and is_answer(each.reply)
    ]
