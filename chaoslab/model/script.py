"""`scripted`: a model that says what a test has written down, step by step."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

from chaoslab.base.jsonable import to_one_line
from chaoslab.core.answers import ReadAnswer
from chaoslab.model._chat import ChatReply, ToolCall, extract_message_text, find_failed_tool
from chaoslab.model.app import LiveModel
from chaoslab.model.formats.common import Chat, ModelRefused
from chaoslab.model.offline import check_seconds

LIKE = 'lab.call("refund", order=17), a text, a list of calls, or {"error": 429}'
IN_JSON = LIKE.replace('lab.call("refund", order=17)', '{"call": "refund", "arguments": {"order": 17}}')
SHOWN = 60


@dataclass(frozen=True)
class ScriptedCall:
    """A call of a tool that a scripted model makes."""

    tool: str
    arguments: Mapping[str, Any]


def call(tool: str, /, **arguments: Any) -> ScriptedCall:
    """A step of `scripted`: the model calls this tool with these arguments.

    Raises:
        TypeError: the tool's name is no text, or an argument is no JSON.
    """
    if not isinstance(tool, str) or not tool:
        raise TypeError(f"call has {tool!r:.60} as its tool: it should be a name, as in lab.call('refund', order=17)")
    for name, value in arguments.items():
        try:
            # By default, json.dumps writes NaN and Infinity, which are no JSON.
            json.dumps(value, allow_nan=False).encode()
        except (TypeError, ValueError, RecursionError):
            raise TypeError(f"{name} of the call of {tool} is {value!r:.60}: it should be JSON") from None
    return ScriptedCall(tool, arguments)


@dataclass(frozen=True)
class Error:
    """A step at which the model answers with an error of its service. `message`: the service's own if it is empty."""

    status: int
    message: str = ""


Step = ChatReply | Error


def scripted(steps: Sequence[Any], *, on_failure: str = "", token_s: float = 0.0) -> Scripted:
    """A model for `services=` that follows a script: `lab.scripted([lab.call("refund", order=17), "done"])`.

    Each new request takes the next step: a text, a `lab.call`, a list of calls (with a text too, if wanted), or an
    error such as `{"error": 429}`, with `"message"` if wanted. A repetition of a request whose answer did not reach the
    client gets the same step again, so a retry uses up no step; so does a request that goes on from it with a failure
    in its history, for the calls that could not be made as they arrived. It does so each time: an agent that never
    stops asking is hung (`model_calls_max`). An error is used up when it is given. Every
    trial begins with the first step. Past the last one the model answers 400, and the trial's `warnings` say so. The
    model speaks the formats of `offline_model`, and `token_s` is the same.

    A script cannot react, so a trial in which it was told something else than without faults is unknown. With
    `on_failure` it reacts, and is judged: the answer to a tool's failure, in place of the next step, as in "I could not
    {tool}."

    Raises:
        ValueError, TypeError: the script is empty, or a step is none of these; the message says which.
    """
    if isinstance(steps, str | bytes | Mapping | ScriptedCall) or not isinstance(steps, Sequence):
        raise TypeError(f"the script is {steps!r:.60}: it should be a list of steps, each {LIKE}")
    if not steps:
        raise ValueError(f"the script is empty: it should have at least one step, each {LIKE}")
    if not isinstance(on_failure, str) or (on_failure and set(re.findall(r"[{}]", on_failure.replace("{tool}", "")))):
        raise ValueError(f'on_failure is {on_failure!r:.60}: it should be a text, as in "I could not {{tool}}."')
    script_steps = [_parse_script_step(number, step) for number, step in enumerate(steps, 1)]
    return Scripted(script_steps, on_failure=on_failure, token_s=check_seconds(token_s))


def script_from_json(value: Any) -> Scripted:
    """The model of a script in JSON: a list of steps as in `scripted`, with {"call": "refund", "arguments": {"order":
    17}} for a call. Raises ValueError, TypeError: as `scripted`."""
    if not isinstance(value, list):
        raise TypeError(f"the script is {value!r:.60}: it should be a list of steps, each {IN_JSON}")
    return scripted([_step_from_json(number, step) for number, step in enumerate(value, 1)])


def _step_from_json(number: int, step: Any) -> Any:
    if isinstance(step, list):
        return [_step_from_json(number, item) for item in step]
    if not isinstance(step, Mapping) or "call" not in step:
        return step
    arguments = step.get("arguments", {})
    if set(step) - {"call", "arguments"} or not isinstance(step["call"], str) or not isinstance(arguments, Mapping):
        raise TypeError(f"step {number} of the script is {step!r:.60}: it should be {IN_JSON}")
    return ScriptedCall(step["call"], arguments)


@dataclass
class Given:
    """A step that was given to a request. `lost`: its answer did not reach the client, or not all of its calls did."""

    chat: Chat
    reply: ChatReply
    lost: bool = False
    reacts: bool = False
    """It is the answer to a tool's failure, not a step."""


class Scripted(LiveModel):
    """A model that follows a script. Its state is one trial's."""

    def __init__(self, steps: Sequence[Step], *, on_failure: str = "", token_s: float = 0.0) -> None:
        super().__init__(token_s=token_s)
        self.steps, self.on_failure = tuple(steps), on_failure
        self._taken = self._again = 0
        self._open: dict[bytes, Given] = {}
        """The steps that were given to requests whose answers did not reach their clients yet."""

    def begin_trial(self, host: str, trial: str, warn: Callable[[str], object]) -> None:
        super().begin_trial(host, trial, warn)
        self._taken, self._again, self._open = 0, 0, {}

    def make_reply(self, chat: Chat, key: bytes) -> ChatReply:
        earlier = key if key in self._open else self._find_repeated_request(chat)
        if earlier is not None:
            answered = self._open.pop(earlier)
            # Under the new request's key, by which `handle_answer_as_received` looks the answer up.
            self._open[key] = replace(answered, chat=chat, lost=False)
            return answered.reply
        # After the repetitions: a retry of a request gets the answer that was made for it.
        if self.on_failure and (tool := find_failed_tool(chat.messages)):
            answer = ChatReply(self.on_failure.replace("{tool}", tool), ())
            self._open[key] = Given(chat, answer, reacts=True)
            return answer
        if self._taken >= len(self.steps):
            self._refuse_past_end(chat)
        step = self.steps[self._taken]
        # Used up before an error is raised: the retry after it takes the next step.
        self._taken += 1
        if isinstance(step, Error):
            raise ModelRefused(step.status, step.message)
        self._open[key] = Given(chat, step)
        return step

    def _find_repeated_request(self, chat: Chat) -> bytes | None:
        """The key of the request that this one repeats with its failure in the history, if calls of its answer were
        lost."""
        for key, answered in self._open.items():
            before = answered.chat.messages
            # The same conversation with more behind it: the client could not make the calls, and asks again.
            if (
                answered.lost
                and len(before) < len(chat.messages)
                and list(chat.messages[: len(before)]) == list(before)
            ):
                return key
        return None

    def get_answer_source(self, path: str, body: bytes) -> str | None:
        """The source of the answer to a request under way: "script", or "reacting script" of one that may react; None
        if it did."""
        given = self._open.get(path.encode() + body)
        if not self.on_failure:
            return "script"
        return None if given is not None and given.reacts else "reacting script"

    def handle_answer_as_received(self, path: str, body: bytes, heard: ReadAnswer | None) -> None:
        super().handle_answer_as_received(path, body, heard)
        key = path.encode() + body
        answered = self._open.get(key)
        if answered is None:
            return
        calls = answered.reply.tool_calls
        heard_calls = list(heard.calls.values()) if heard is not None else []
        lost = [
            call
            # A fault may have added calls or left some out. An added one stands beside none of the script's.
            for call, heard_call in zip_longest(calls, heard_calls)
            if call and not (heard_call and _is_usable_call(heard_call, answered.chat))
        ]
        if lost:  # as often as need be: a script that went on would hide an agent that never ends
            self._again += len(lost) < len(calls) or heard is not None
            self._open[key] = Given(answered.chat, self._renew_lost_call_ids(answered.reply, lost, heard), lost=True)
        # A text that a fault has changed counts as one that did not arrive: an equal request gets it again.
        elif heard is not None and (calls or heard.text == answered.reply.content):
            del self._open[key]

    def _renew_lost_call_ids(self, reply: ChatReply, lost: Sequence[ToolCall], heard: ReadAnswer | None) -> ChatReply:
        """The calls that were lost. Those that their client knows in another form get other ids, since some providers
        refuse one id twice."""
        if heard is None:
            return reply
        return replace(reply, tool_calls=tuple(replace(call, id=f"{call.id}_{self._again}") for call in lost))

    def _refuse_past_end(self, chat: Chat) -> None:
        count = len(self.steps)
        last = to_one_line(extract_message_text(chat.messages[-1]), SHOWN) if chat.messages else ""
        message = (
            f"the script of {self.host} ran out after {count} step{'s' * (count > 1)}: request {self._taken + 1} "
            f'has no step, its last message is "{last}"'
        )
        self.warn(message)
        raise ModelRefused(400, message, code="script_ran_out")


TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,), "integer": (int,), "number": (int, float), "boolean": (bool,), "array": (list,),
    "object": (dict,),
}  # fmt: skip


def _is_usable_call(heard_call: Sequence[str], chat: Chat) -> bool:
    """True if a call (its name, its arguments as text) can be made with the tools of the request."""
    name, arguments = heard_call
    offered = [tool["function"] for tool in chat.tools if isinstance(tool.get("function"), Mapping)]
    tools = {str(tool.get("name")): tool.get("parameters") for tool in offered}
    try:
        values = json.loads(arguments or "{}")
    except ValueError:
        return False
    # A request without tools gives nothing to hold the name against.
    if not isinstance(values, dict) or (tools and name not in tools):
        return False
    schema = _mapping_or_empty(tools.get(name))
    properties = _mapping_or_empty(schema.get("properties"))
    types = {key: TYPES.get(str(_mapping_or_empty(properties.get(key)).get("type")), (object,)) for key in values}
    return set(schema.get("required") or ()) <= set(values) and all(isinstance(values[n], types[n]) for n in values)


def _parse_script_step(number: int, step: Any) -> Step:
    """The step of this number, from 1, in the form of a reply."""
    if isinstance(step, Mapping):
        return _parse_error_step(number, step)
    parts = step if isinstance(step, list | tuple) else [step]
    if not parts or not all(isinstance(item, str | ScriptedCall) for item in parts):
        raise TypeError(f"step {number} of the script is {step!r:.60}: it should be {LIKE}")
    try:
        text = "\n".join(item for item in parts if isinstance(item, str))
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"step {number} of the script has half a surrogate pair: it should be text") from None
    calls = [item for item in parts if isinstance(item, ScriptedCall)]
    tool_calls = (
        ToolCall(f"call_{number}_{nth}", scripted_call.tool, scripted_call.arguments)
        for nth, scripted_call in enumerate(calls, 1)
    )
    return ChatReply(text, tuple(tool_calls))


def _parse_error_step(number: int, step: Mapping[Any, Any]) -> Error:
    status, message = step.get("error"), step.get("message", "")
    right = type(status) is int and 400 <= status <= 599 and isinstance(message, str)
    if not right or set(step) - {"error", "message"}:
        raise ValueError(
            f"step {number} of the script is {step!r:.60}: an error should be a status from 400 to 599, as in "
            '{"error": 429} or {"error": 503, "message": "down for now"}'
        )
    assert type(status) is int
    return Error(status, message)


def _mapping_or_empty(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
