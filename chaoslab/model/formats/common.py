"""A request to a model and its answer in the form that all formats share, and `Format`, the base of each format."""

import hashlib
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

from chaoslab.base.identity import hash_value, parse_json
from chaoslab.base.json_text import decode_json
from chaoslab.base.phrases import get_status_phrase
from chaoslab.core.answers import UNREAD, ReadAnswer
from chaoslab.core.dialog import CHAT, Dialog
from chaoslab.core.service_spec import ErrorReply
from chaoslab.core.stream import EVENT_STREAM, EventSplitter, FrameSplitter, get_event_data
from chaoslab.model._chat import ChatReply, extract_message_text
from chaoslab.model._completion import count_tokens

spelt = json.JSONEncoder(ensure_ascii=False).encode
QUOTA = 402
"""The status under which a format keeps its reply for an account without credit, whatever that reply's own status."""


class ModelRefused(Exception):
    """The model's refusal of a request. Without a message it is the service's own for this status."""

    def __init__(self, status: int, message: str = "", *, code: str | None = None, param: str | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.code, self.param = status, message, code, param


@dataclass(frozen=True)
class Constraints:
    """The constraints of a request on its answer. `schema`: of its JSON, {} for any, None for text; `tools`: the names
    of those that alone may be called, None for all; `forced`: one must be; `parallel`: several may be; `tokens_max`: of
    the answer; `stop`: the texts before which it ends."""

    schema: Mapping[str, Any] | None = None
    tools: tuple[str, ...] | None = None
    forced: bool = False
    parallel: bool = True
    answers: int = 1
    tokens_max: int | None = None
    stop: tuple[str, ...] = ()


def derive_id(request_bytes: bytes) -> str:
    """32 hex digits, of which the ids of an answer to these bytes are made."""
    return hashlib.blake2s(request_bytes, digest_size=16).hexdigest()


@dataclass(frozen=True)
class Chat:
    """A request to a model. `messages` and `tools` are in OpenAI's format for chat completions. `native`: the request's
    own JSON. `asked`: its bytes and its path, of which the ids of the answer are a hash. `events`: the answer is wanted
    in parts; `sse`: as server-sent events. `limits`: the constraints on the answer, for a model that obeys them."""

    model: str
    messages: Sequence[Mapping[str, Any]]
    tools: Sequence[Mapping[str, Any]]
    native: Mapping[str, Any]
    asked: bytes
    events: bool = False
    sse: bool = True
    limits: Constraints = Constraints()

    @cached_property
    def id(self) -> str:
        """32 hex digits."""
        return derive_id(self.asked)

    @cached_property
    def estimated_tokens(self) -> int:
        """The estimated tokens of the messages and the tools."""
        count = sum(
            4
            + count_tokens(extract_message_text(message))
            + (count_tokens(message["tool_calls"]) if message.get("tool_calls") else 0)
            for message in self.messages
        )
        return count + (count_tokens(list(self.tools)) if self.tools else 0)


@dataclass(frozen=True)
class ModelAnswer:
    """A model's answer to a request. `created`: seconds since 1970."""

    chat: Chat
    reply: ChatReply
    created: int

    @cached_property
    def estimated_tokens(self) -> int:
        """The estimated tokens of the reply."""
        calls = [make_common_call(call.name, dict(call.arguments), call.id) for call in self.reply.tool_calls]
        return count_tokens(self.reply.content) + (count_tokens(calls) if calls else 0)


class Format(ABC):
    """One format of a model's API: it reads requests into a `Chat`, writes a `ModelAnswer` as the real service does."""

    name: ClassVar[str]
    dialog: ClassVar[Dialog] = CHAT
    stream_type: ClassVar[str] = EVENT_STREAM
    known: ClassVar[Mapping[int, ErrorReply]]
    """The error replies for which the service has words of its own."""
    listed: ClassVar[str] = "models"
    """The field of the list of models."""
    form: ClassVar[re.Pattern[str]]
    """The form of its paths. What its groups hold is part of a question."""
    cutter: ClassVar[type[EventSplitter | FrameSplitter]] = EventSplitter
    """Cuts a streamed reply into events."""

    def matches_path(self, path: str) -> bool:
        """True if requests to the path are of this format."""
        return self.form.search(path) is not None

    def extract_event_json(self, event: bytes) -> bytes:
        """The JSON of an event of a streamed reply; empty if it has none."""
        return get_event_data(event)

    @abstractmethod
    def parse_request(self, path: str, query: str, body: Mapping[str, Any], request_bytes: bytes) -> Chat:
        """A request in the common form. Raises Refused: it is no request of this format."""

    def check_history(self, chat: Chat, path: str) -> None:  # noqa: B027 - not every service looks at the history
        """Checks that the service takes the history of a request. Raises Refused: it does not, in its own words
        (`histories.py`)."""

    @abstractmethod
    def read_constraints(self, chat: Chat) -> Constraints:
        """The constraints on the answer. Raises Refused: the offline model obeys one of them not, or it is none."""

    @abstractmethod
    def build_answer_json(self, answer: ModelAnswer) -> Any:
        """The answer's JSON."""

    @abstractmethod
    def stream_answer(self, answer: ModelAnswer) -> Iterator[bytes]:
        """The answer in parts."""

    @abstractmethod
    def make_error_reply(
        self, status: int, message: str, code: str | None = None, param: str | None = None
    ) -> ErrorReply:
        """An error reply. `param`: the part of the request that is wrong."""

    def make_model_list(self, names: Sequence[str]) -> dict[str, Any]:
        """The JSON of the list of models."""
        return {self.listed: [self.describe_model(name) for name in names]}

    def describe_model(self, name: str) -> Any:
        """The JSON of one model, as OpenAI has it."""
        return {"id": name, "object": "model", "created": 0, "owned_by": "chaoslab"}

    def compute_question_digest(self, path: str, body: bytes) -> str:
        """A digest of what a request asks for, by which a log's answers are found. As a rule the body alone says it, as
        in the logs of the lab's own agent. Raises ValueError: the body is no JSON."""
        value, match = parse_json(body or b"null"), self.form.search(path)
        return hash_value([match and match.groups(), value] if self.form.groups else value)

    def prepend_remembered_messages(self, body: Mapping[str, Any], memory: Mapping[str, Any]) -> Mapping[str, Any]:  # noqa: ARG002
        """The request with what it leaves to the service's memory. Raises Refused: the memory does not hold it."""
        return body

    def remember_answer(self, answer: ModelAnswer, memory: dict[str, Any]) -> None:  # noqa: B027
        """Keeps in the service's memory what later requests may refer to; most formats keep nothing."""

    def correct_stored_answer(self, memory: dict[str, Any], body: bytes, heard: ReadAnswer) -> None:  # noqa: B027
        """Lets the service's memory hold what its client heard, which a fault may have changed on its way."""

    def make_answer_headers(self, answer: ModelAnswer) -> Mapping[str, str]:  # noqa: ARG002
        """The headers of an answer, besides those of its body."""
        return {}

    @cached_property
    def error_replies(self) -> Mapping[int, ErrorReply]:
        """The service's own error replies, by status from 400 to 599, and that for `CONTEXT_LENGTH`."""
        all_of_them = {
            status: self.make_error_reply(status, get_status_phrase(status, f"status {status}"))
            for status in range(400, 600)
        }
        return {**all_of_them, **self.known}

    def estimate_tokens(self, path: str, body: bytes, heard: ReadAnswer) -> tuple[int, int]:
        """The tokens of a request and of its answer, estimated as everywhere in the lab: one for four characters."""
        answer = 0
        # Any id of the usual length: a call is counted with its id.
        for choice in (heard, *heard.others.values()):
            calls = [make_common_call(name, arguments, "call_1_1") for name, arguments in choice.calls.values()]
            answer += count_tokens(choice.text) + (count_tokens(calls) if calls else 0)
        try:
            return self.parse_request(path, "", parse_json(body), body).estimated_tokens, answer
        except (ModelRefused, RecursionError, *UNREAD):
            return count_tokens(body.decode("utf-8", "replace")), answer

    def read_whole_reply(self, value: Any) -> ReadAnswer:
        """Reads a whole reply by its JSON. One that cannot be read says nothing."""
        heard = ReadAnswer()
        with suppress(*UNREAD):
            self.dialog.answers.read_answer(heard, value)
        return heard

    def read_streamed_reply(self, body: bytes) -> ReadAnswer:
        """Reads a streamed reply. An event of it that cannot be read says nothing."""
        heard = ReadAnswer()
        for event in self.cutter().feed(body):
            if data := self.extract_event_json(event):
                try:
                    self.dialog.answers.read_event(heard, decode_json(data.decode()))
                except UNREAD:
                    continue  # its reader gets it as it is
        return heard


def parse_object_list(field: str, value: Any) -> list[Mapping[str, Any]]:
    """The value as a list of objects; empty for None. Raises Refused: it is none."""
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, Mapping) for item in value):
        raise ModelRefused(400, f"{field}: value must be an array of objects")
    return value


def parse_text_list(field: str, value: Any) -> list[str]:
    """The value as a list of texts; empty for None. Raises Refused: it is none."""
    if not isinstance(value or [], list) or not all(isinstance(item, str) for item in value or ()):
        raise ModelRefused(400, f"{field}: value must be an array of strings")
    return value or []


def extract_content_text(content: Any) -> str:
    """The text of a content that is a text, or a list of parts with a text each; JSON of anything else."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(str(piece.get("text", "")) for piece in content if isinstance(piece, Mapping))
    return "" if content is None else spelt(content)


def make_common_call(name: str, arguments: Any, call_id: str) -> dict[str, Any]:
    """A call in the common form. `arguments`: JSON as text, or its value."""
    text = arguments if isinstance(arguments, str) else spelt(arguments)
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": text}}


def make_system_message(text: str) -> list[dict[str, Any]]:
    """The message of the system in the common form; none for an empty text."""
    return [{"role": "system", "content": text}] if text else []


def make_tool_result(call_id: str, text: str, *, failed: bool = False) -> dict[str, Any]:
    """A tool's result in the common form."""
    return {"role": "tool", "tool_call_id": call_id, "content": text, **({"status": "error"} if failed else {})}


def make_turn_messages(
    text: str, calls: Sequence[Any], results: Sequence[dict[str, Any]], *, assistant: bool
) -> list[dict[str, Any]]:
    """A message that holds text, calls and results in the common form: results of tools become messages of their own,
    before the user's text."""
    if assistant:
        return [{"role": "assistant", "content": text, **({"tool_calls": list(calls)} if calls else {})}]
    return [*results, *([{"role": "user", "content": text}] if text or not results else [])]


def merge_assistant_messages(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages with neighbouring ones of the assistant made one, as text and calls of one turn are."""
    merged: list[dict[str, Any]] = []
    for message in messages:
        last = merged[-1] if merged else {}
        if message["role"] == "assistant" == last.get("role"):
            last["content"] = f"{last.get('content') or ''}{message.get('content') or ''}"
            last["tool_calls"] = [*last.get("tool_calls", ()), *message.get("tool_calls", ())]
        else:
            merged.append(dict(message))
    return merged


def make_common_tool(name: str, description: Any, parameters: Any) -> dict[str, Any]:
    """A tool in the common form."""
    schema = parameters if isinstance(parameters, Mapping) else {"type": "object", "properties": {}}
    return {"type": "function", "function": {"name": name, "description": str(description or ""), "parameters": schema}}


def add_headers(error: ErrorReply, **headers: str) -> ErrorReply:
    """The reply with these headers besides its own; `_` in a name stands for `-`."""
    return replace(error, headers={**error.headers, **{key.replace("_", "-"): text for key, text in headers.items()}})
