"""`ChangedReply`, the base of faults that make another answer out of a true one."""

import json
import re
from collections.abc import Mapping
from typing import Any, ClassVar

from chaoslab.core import json_values
from chaoslab.core.dialog import CHAT
from chaoslab.core.exchange import Call, Flow, Reply, TrialContext
from chaoslab.core.fault import Fault, Left
from chaoslab.core.json_values import Place
from chaoslab.core.untrue import classify_value

LONG = 19
"""The digits from which on a number in a path is no whole number that a service would tell."""  # 2**63 has 19
_ID_IN_PATH = re.compile(r"/[^/]*\d[^/]*")


class ChangedReply(Fault):
    """A fault that lets the work be done and changes the value of the answer: a JSON value, a function's result, or
    JSON in a text. Errors, streams and the answers of models pass unchanged, as does an answer without anything to
    change. Then no fault is injected."""

    layer = "meaning"
    corrupts = "reply"
    leaves: ClassVar[Left] = "value"
    of_tools = True

    def flow(self, call: Call, context: TrialContext) -> Flow:
        reply: Reply = yield call
        if not is_usable_reply(reply) or is_model_request(call):
            return reply
        value = decode_reply_value(reply)
        changed = self.change_value(value, call, context)
        if changed is value:
            return reply
        # JSON in a text stays JSON in a text.
        in_text = isinstance(reply.value, str) and not isinstance(value, str)
        new_value = dump_json_like(changed, reply.value) if in_text else changed
        return reply.with_value(new_value) if self.breaks_form else reply.with_fitted_value(new_value)

    def change_value(self, value: Any, call: Call, context: TrialContext) -> Any:
        """The value that the caller gets. `value` itself if there is nothing to change; it is never altered."""
        raise NotImplementedError


def is_usable_reply(reply: Reply) -> bool:
    """True for a whole reply that has a value and is no error."""
    return reply.status < 300 and getattr(reply, "ok", True) and reply.stream is None and reply.value is not None


def is_model_request(call: Call) -> bool:
    """True for a request to a model: it is in a format of its own, or names the model and has messages."""
    value = call.value
    if call.dialog is not CHAT:
        return True
    # Many services have a field that is called model; a model's requests have messages too.
    return isinstance(value, Mapping) and isinstance(value.get("model"), str) and bool(call.dialog.list_messages(value))


def decode_reply_value(reply: Reply) -> Any:
    """The reply's value; of a text that is an object or a list in JSON, these."""
    value = reply.value
    inner = json_values.parse_container(value) if isinstance(value, str) else None
    return value if inner is None else inner


def dump_json_like(value: Any, like: str) -> str:
    """The value as JSON in a text that is laid out like another."""
    return json.dumps(value, ensure_ascii=False, default=str, indent=2 if "\n" in like else None)


def collect_arguments(call: Call) -> dict[Any, Any]:
    """The call's arguments by name; of a request to a service the parts of its path too."""
    parts = call.tool.split("/")[1:]
    path = {
        ("path", n): int(piece) if piece.isdecimal() and len(piece) < LONG else piece for n, piece in enumerate(parts)
    }
    return {**path, **dict(json_values.list_entries(call.value))}


def list_argument_values(call: Call) -> list[Any]:
    """The leaves of the call's arguments: an answer that holds one of them repeats the question."""
    inputs = collect_arguments(call)
    return [json_values.get_at(inputs, key_path) for key_path in json_values.find_leaves(inputs)]


def find_informative_paths(value: Any, call: Call) -> list[Place]:
    """The places of the values that were asked for: first choice are those that neither repeat an argument nor are a
    flag, an id or a link; without any such, all."""
    # As JSON spells them: to Python 1 and True are equal.
    repeated = {json_values.dump_canonical(wanted) for wanted in list_argument_values(call)}
    every = json_values.find_leaves(value)
    best = [
        key_path
        for key_path in every
        if classify_value(leaf := json_values.get_at(value, key_path)) not in ("flag", "id", "url")
        and json_values.dump_canonical(leaf) not in repeated
    ]
    return (
        best
        or [
            key_path
            for key_path in every
            if json_values.dump_canonical(json_values.get_at(value, key_path)) not in repeated
        ]
        or every
    )


def pick_at_share(among: list[Any], point: float) -> Any:
    """The entry at a share (0–1) of the list."""
    # A share of 1 is the last entry, and not one behind it.
    return among[min(int(point * len(among)), len(among) - 1)]


def list_answered_calls(call: Call, context: TrialContext) -> list[tuple[Call, Reply]]:
    """The earlier calls of the same tool with their answers, oldest first, without errors and without what a fault had
    changed. Requests to paths that differ in ids alone are of the same tool."""
    tool = _ID_IN_PATH.sub("/#", call.tool)
    return [
        (exchange.call, exchange.reply)
        for exchange in context.earlier
        if (exchange.call.target, _ID_IN_PATH.sub("/#", exchange.call.tool)) == (call.target, tool)
        and exchange.true
        and exchange.reply is not None
        and is_usable_reply(exchange.reply)
    ]


def is_same_call(call: Call, earlier: Call) -> bool:
    return (call.tool, call.value) == (earlier.tool, earlier.value)


def replace_echoed_arguments(value: Any, was: Call, call: Call) -> Any:
    """An answer to one call with the arguments of another in the place of its own."""
    now = collect_arguments(call)
    names = {
        json_values.dump_canonical(leaf): now[key]
        for key, leaf in collect_arguments(was).items()
        if key in now and json_values.is_leaf(leaf)
    }
    for key_path in json_values.find_leaves(value):
        name = json_values.dump_canonical(json_values.get_at(value, key_path))
        if name in names:
            value = json_values.replace_at(value, key_path, names[name])
    return value
