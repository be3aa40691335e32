"""The messages in a request to a model, whatever the format: where they stand, the role of each, and the results of
tools among them. A request in brief (`build_request_sketch`) tells which of several is nearest to another one, and how
they differ."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from chaoslab.base.identity import hash_value
from chaoslab.base.jsonable import render_brief, to_one_line
from chaoslab.core.answers import CHAT_ANSWERS, AnswerFormat

TOOL = "tool"
"""The role of a message that answers a call, and that no provider takes without the message before it."""


TEXTS = frozenset({
    "content", "text", "parts", "output", "functionResponse", "function_response", "response", "result", "toolResult"
})  # fmt: skip
"""The fields of a message that hold its words, whatever the format, or lead to them."""


def _get_role(message: Mapping[str, Any]) -> str:
    role = message.get("role")
    # OpenAI's newer models take developer in the place of system.
    return "system" if role == "developer" else str(role)


def _build_user_message(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


@dataclass(frozen=True)
class Dialog:
    """The place of the messages in a request's JSON: the field `key`. `role` gives the role of a message: system, user,
    assistant or tool. `from_user` makes a user's message of a text. `bare`: a text may stand for all messages, as the
    user's only one. `answers` reads the model's answers."""

    key: str = "messages"
    role: Callable[[Mapping[str, Any]], str] = _get_role
    from_user: Callable[[str], dict[str, Any]] = _build_user_message
    bare: bool = False
    answers: AnswerFormat = CHAT_ANSWERS

    def list_messages(self, value: Any) -> list[Any]:
        """The messages of a request; empty if it has none."""
        messages = value.get(self.key) if isinstance(value, Mapping) else None
        if self.bare and isinstance(messages, str):
            return [self.from_user(messages)]
        return [message for message in messages if isinstance(message, Mapping)] if isinstance(messages, list) else []

    def with_messages(self, value: Mapping[str, Any], messages: list[Any]) -> dict[str, Any]:
        """The request with other messages."""
        return {**value, self.key: messages}

    def group_messages(self, value: Any) -> "list[MessageUnit]":
        """The messages of a request, each together with the results behind it, which may not stand without it."""
        units: list[MessageUnit] = []
        for message in self.list_messages(value):
            role = self.role(message)
            if role == TOOL and units:
                units[-1].messages.append(message)
            else:
                units.append(MessageUnit(role, [message]))
        return units

    def with_message_units(self, value: Mapping[str, Any], units: "Iterable[MessageUnit]") -> dict[str, Any]:
        """The request with other messages."""
        return self.with_messages(value, [message for unit in units for message in unit.messages])


@dataclass
class MessageUnit:
    """A message and the results behind it. `role`: the role of the first message."""

    role: str
    messages: list[Any]

    @property
    def is_removable(self) -> bool:
        """False for a message of the system, and for a result that answers no message of this request."""
        return self.role not in ("system", TOOL)

    @property
    def has_results(self) -> bool:
        """True if results stand behind the message."""
        return len(self.messages) > 1


def map_texts(message: Any, change: Callable[[str], str]) -> Any:
    """A message with each of its texts changed. A model's thoughts, which a provider signs, stay."""
    if isinstance(message, Mapping) and message.get("type") in ("reasoning", "thinking"):
        return message
    return _map_texts(message, change)


def _map_texts(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_map_texts(entry, change) if isinstance(entry, Mapping) else entry for entry in value]
    if isinstance(value, Mapping):
        return {key: _map_texts(entry, change) if key in TEXTS else entry for key, entry in value.items()}
    return value


def collect_text(message: Any) -> str:
    """The texts of a message, one a line."""
    texts: list[str] = []

    def append_text(text: str) -> str:
        texts.append(text)
        return text

    map_texts(message, append_text)
    return "\n".join(texts)


CHAT = Dialog()
"""The messages of OpenAI's chat completions."""


@dataclass(frozen=True)
class FoundToolResult:
    """A result. `tool`: the tool's name. `holder`: the object in the request whose field `key` is the content."""

    tool: str
    holder: dict[str, Any]
    key: str

    @property
    def content(self) -> Any:
        return self.holder[self.key]


def find_tool_results(messages: Sequence[Any]) -> list[FoundToolResult]:
    """The results in these messages, the oldest first. One whose call is not there is left out."""
    names: dict[Any, str] = {}
    results = []
    for block in (block for message in messages for block in _iterate_blocks(message)):
        match block:
            case {"type": "function_call", "call_id": str(call_id), "name": str(name)}:  # OpenAI's responses
                names[call_id] = name
            case {"type": "tool_use", "id": str(call_id), "name": str(name)}:  # Anthropic's messages
                names[call_id] = name
            case {"toolUse": {"toolUseId": str(call_id), "name": str(name)}}:  # Bedrock's converse
                names[call_id] = name
            case {"id": str(call_id), "function": {"name": str(name)}}:  # OpenAI's chat completions
                names[call_id] = name
            case {"id": str(call_id), "custom": {"name": str(name)}}:  # a tool that takes any text
                names[call_id] = name
            case {"type": "function_call_output", "call_id": str(call_id), "output": _} if call_id in names:
                results.append(FoundToolResult(names[call_id], block, "output"))
            case {"type": "tool_result", "tool_use_id": str(call_id), "content": _} if call_id in names:
                results.append(FoundToolResult(names[call_id], block, "content"))
            case {"role": "tool", "tool_call_id": str(call_id), "content": _} if call_id in names:
                results.append(FoundToolResult(names[call_id], block, "content"))
            case {"toolResult": {"toolUseId": str(call_id), "content": _}} if call_id in names:
                results.append(FoundToolResult(names[call_id], block["toolResult"], "content"))
            case {"functionResponse": {"name": str(name), "response": _}}:  # Gemini
                results.append(FoundToolResult(name, block["functionResponse"], "response"))
            case {"function_response": {"name": str(name), "response": _}}:
                results.append(FoundToolResult(name, block["function_response"], "response"))
    return results


def _iterate_blocks(message: Any) -> Iterator[Any]:
    """The message, and the objects in it that may be calls or results."""
    yield message
    if isinstance(message, Mapping):
        for key in ("tool_calls", "content", "parts"):
            inner = message.get(key)
            yield from inner if isinstance(inner, list) else ()


NEWEST = 6
"""The most messages that are told in words."""
WORDS, VALUE = 200, 60
"""The most characters of a message, and of another value."""


def build_request_sketch(dialog: Dialog, value: Any) -> dict[str, Any]:
    """The request's messages behind the model's last answer, in words, under `messages`; a digest of those before them
    under `earlier`; every other field as it is if it is short, else as a digest. Empty if the request is no object."""
    if not isinstance(value, Mapping):
        return {}
    messages = dialog.list_messages(value)
    roles = [dialog.role(item) for item in messages]
    last = max((n for n, role in enumerate(roles, 1) if role == "assistant"), default=0)
    first = max(last, len(messages) - NEWEST)
    newest = zip(roles[first:], messages[first:], strict=True)
    lines = [f"{role}: {to_one_line(collect_text(item), WORDS)}" for role, item in newest]
    rest = {str(key): _shorten_value(item) for key, item in value.items() if key != dialog.key}
    return {"messages": lines, "earlier": hash_value(messages[:first]) if first else "none", **rest}


def measure_request_likeness(left: Mapping[str, Any], right: Mapping[str, Any]) -> float:
    """The likeness of two sketches, from 0 to 3: the earlier messages weigh most, then the newest ones, then the
    rest."""
    first, second = ("\n".join(map(str, request_sketch.get("messages") or ())) for request_sketch in (left, right))
    rest = {*left, *right} - {"messages", "earlier"}
    alike: float = sum(key in left and key in right and left[key] == right[key] for key in rest) / max(1, len(rest))
    before = 1.5 if left.get("earlier") == right.get("earlier") else 0.0
    return before + float(SequenceMatcher(None, first, second).ratio()) + alike / 2


def _shorten_value(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return value if len(value) <= VALUE else f"a text, {hash_value(value)[:8]}"
    text = render_brief(value, VALUE + 1)
    return text if len(text) <= VALUE else f"{len(value)} entries, {hash_value(value)[:8]}"
