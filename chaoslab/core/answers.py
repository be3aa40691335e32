"""A model's answer, whole or streamed, whatever the format: its text, its tool calls, and the reason of its end."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, ClassVar

from chaoslab.core.stream import DONE, get_event_type, is_done_marker

CHAT_FAILED = {
    "message": "The server had an error while processing your request. Sorry about that!", "type": "server_error",
    "param": None, "code": None,
}  # fmt: skip
UNREAD = (ValueError, RecursionError, LookupError, TypeError, AttributeError)
"""The errors that reading an answer of another form raises."""


@dataclass(frozen=True)
class FunctionCall:
    """A call that a model wants made. `arguments`: the text of a JSON object, or another text. `native`: the format's
    own block, None for one that is new."""

    name: str
    arguments: str
    native: Mapping[str, Any] | None = None

    @property
    def parsed_arguments(self) -> dict[str, Any] | None:
        """The arguments; None if their text is no object."""
        try:
            values = json.loads(self.arguments)
        except (ValueError, RecursionError):
            return None
        return values if isinstance(values, dict) else None

    def with_arguments(self, values: Mapping[str, Any]) -> FunctionCall:
        return replace(self, arguments=json.dumps(dict(values), ensure_ascii=False))


@dataclass(frozen=True)
class AnswerContent:
    """The content of an answer. `finish`: "length", "content_filter", or empty for what is usual. `objects`: arguments
    are JSON objects there, so no other text can stand for them."""

    text: str
    calls: tuple[FunctionCall, ...] = ()
    finish: str = ""
    objects: bool = False


@dataclass
class ReadAnswer:
    """A model's answer as the lab reads it, as far as it came. The tokens are None if the answer did not state them.
    `finished`: it ended as the model meant it to."""

    model: str = ""
    tokens_in: int | None = None
    tokens_out: int | None = None
    text: str = ""
    calls: dict[Any, list[str]] = field(default_factory=dict)
    """Name and arguments of each call."""
    natives: dict[Any, Mapping[str, Any]] = field(default_factory=dict)
    """The format's own block of each call."""
    others: dict[int, ReadAnswer] = field(default_factory=dict)
    """Further answers to the one request, by their number from 1, where it asked for several."""
    finished: bool = False
    reason: str = ""
    """The reason that the provider states for the answer's end, such as "stop"; empty if it states none."""

    @property
    def rendered_content(self) -> str:
        """The text and the calls in words, and those of the other answers, as in "Yes. | No."."""
        calls = ", ".join(f"{name}({arguments})" for name, arguments in self.calls.values())
        own_text = " ".join(filter(None, (self.text, f"calls {calls}" if calls else "")))
        return (
            " | ".join((own_text, *(answer.rendered_content for _, answer in sorted(self.others.items()))))
            if self.others
            else own_text
        )

    def add_call(self, key: Any, name: Any, arguments: Any, native: Mapping[str, Any] = MappingProxyType({})) -> None:
        """Adds a call, or a part of one."""
        # The parts of one call come in several events.
        self.natives[key] = {**self.natives.get(key, {}), **native}
        call = self.calls.setdefault(key, ["", ""])
        for position, text in enumerate((name, arguments)):
            if isinstance(text, str):
                call[position] += text

    def set_finish_reason(self, reason: Any) -> None:
        """Takes the reason of the answer's end, if a part of the answer states one."""
        if reason:
            self.finished, self.reason = True, str(reason)

    def set_token_counts(self, tokens_in: Any, tokens_out: Any) -> None:
        """Takes the tokens that the answer states; what is no count is left out."""
        # type(), since isinstance takes true for an int.
        if type(tokens_in) is int:
            self.tokens_in = tokens_in
        if type(tokens_out) is int:
            self.tokens_out = tokens_out


class AnswerFormat(ABC):
    """The answers of one format. An event of a stream is the JSON of its data."""

    objects: ClassVar[tuple[bool, bool]] = (False, False)
    """If a whole answer, and a streamed one, has the arguments of calls as objects."""
    without: ClassVar[str] = ""
    """The text of a call's arguments that nothing was said of."""

    @abstractmethod
    def read_answer(self, heard: ReadAnswer, value: Any) -> None:
        """Takes a whole answer's JSON. Raises LookupError, TypeError, AttributeError: it has another form."""

    @abstractmethod
    def read_event(self, heard: ReadAnswer, value: Any) -> None:
        """Takes an event of a stream; raises as `read_answer` does."""

    def extract_content(self, value: Any) -> AnswerContent | None:
        """The content of a whole answer's JSON; None if this is no answer of the format."""
        heard = ReadAnswer()
        try:
            self.read_answer(heard, value)
        except UNREAD:
            return None
        return self.build_content(heard, objects=self.objects[0]) if isinstance(value, Mapping) else None

    @abstractmethod
    def replace_content(self, value: Any, content: AnswerContent) -> dict[str, Any]:
        """The whole answer with another content. Other parts of it stay."""

    def extract_stream_content(self, events: Sequence[Any]) -> AnswerContent | None:
        """The content of a streamed answer; None if it did not end as one should. Raises as `read_answer` does."""
        heard = ReadAnswer()
        for event in events:
            self.read_event(heard, event)
        # Without the reason of its end it was cut: that is no answer to be told anew.
        return self.build_content(heard, objects=self.objects[1]) if heard.reason else None

    def build_content(self, heard: ReadAnswer, *, objects: bool = False) -> AnswerContent:
        """The content of an answer that was read."""
        calls = (
            (name, arguments or self.without, heard.natives[key]) for key, (name, arguments) in heard.calls.items()
        )
        return AnswerContent(heard.text, tuple(FunctionCall(*call) for call in calls), objects=objects)

    @abstractmethod
    def rewrite_events(self, events: Sequence[Any], content: AnswerContent) -> Iterator[dict[str, Any]]:
        """The events of a streamed answer that was heard, with another content. Other parts of it stay."""

    last: ClassVar[bytes] = b""
    """The format's last event, if it is always the same."""
    ends: ClassVar[frozenset[str]] = frozenset()
    """The types of the events with which a stream ends."""
    failed: ClassVar[bytes] = b""
    """The format's event for an answer that fails, if it is always the same."""

    def build_last_event(self, events: Sequence[Any]) -> bytes:  # noqa: ARG002 - as a rule it is always the same
        """The format's last event, for a stream that has said these and ends now. Raises as `read_answer` does."""
        return self.last

    def is_last_event(self, event: bytes) -> bool:
        """Tells if the event is the format's last one."""
        return get_event_type(event) in self.ends

    def build_error_event(self, events: Sequence[Any]) -> bytes:  # noqa: ARG002 - as a rule it is always the same
        """The format's event for an answer that fails behind these events, when its status was sent already."""
        return self.failed

    ping = b": keep-alive\n\n"
    """An event by which the format shows that a stream goes on; by default a comment."""


class ChatAnswers(AnswerFormat):
    """Those of OpenAI's chat completions."""

    last, failed = DONE, b"event: error\ndata: " + json.dumps({"error": CHAT_FAILED}).encode() + b"\n\n"

    def read_answer(self, heard: ReadAnswer, value: Any) -> None:
        self._read_usage(heard, value, value.get("usage"))
        self._read_choice(heard, value["choices"][0])
        for number, choice in enumerate(value["choices"][1:], 1):
            self._read_choice(heard.others.setdefault(number, ReadAnswer()), choice)

    def read_event(self, heard: ReadAnswer, value: Any) -> None:
        # Groq states what was used in a field of its own.
        self._read_usage(heard, value, value.get("usage") or (value.get("x_groq") or {}).get("usage"))
        for choice in value.get("choices") or ():
            number = choice.get("index") or 0
            answer = heard.others.setdefault(number, ReadAnswer()) if number else heard
            answer.set_finish_reason(choice.get("finish_reason"))
            delta = choice.get("delta") or {}
            answer.text += delta.get("content") or ""
            for call in delta.get("tool_calls") or ():
                kind, argument_key = _get_call_type_and_text_key(call)
                # Only the first part of a call has them.
                block, head = call.get(kind) or {}, {key: call[key] for key in ("id", "type") if call.get(key)}
                answer.add_call(call.get("index"), block.get("name"), block.get(argument_key), head)

    @staticmethod
    def _read_choice(heard: ReadAnswer, choice: Mapping[str, Any]) -> None:
        heard.set_finish_reason(choice.get("finish_reason"))
        message = choice["message"]
        heard.text = text_or_empty(message.get("content"))
        for number, call in enumerate(message.get("tool_calls") or ()):
            kind, key = _get_call_type_and_text_key(call)
            heard.add_call(number, call[kind]["name"], call[kind].get(key), call)

    @staticmethod
    def _read_usage(heard: ReadAnswer, value: Mapping[str, Any], usage: Mapping[str, Any] | None) -> None:
        heard.model = str(value.get("model") or heard.model)
        heard.set_token_counts((usage or {}).get("prompt_tokens"), (usage or {}).get("completion_tokens"))

    def rewrite_events(self, events: Sequence[Any], content: AnswerContent) -> Iterator[dict[str, Any]]:
        choices = list(_iterate_first_choices(events))
        (head, first), (last, ending) = choices[0], next(pair for pair in choices if pair[1].get("finish_reason"))
        end = next(position for position, event in enumerate(events) if event is last)
        for event in events[:end]:
            yield from _strip_event(event)
        # OpenAI sends a usage of null in each event if it is to come at the end.
        base = {key: value for key, value in head.items() if key not in ("x_groq", "usage") or value is None}

        def build_event(**delta: Any) -> dict[str, Any]:
            return {**base, "choices": [{**first, "delta": delta, "finish_reason": None}]}

        parts = [
            call_part for _, choice in choices for call_part in (choice.get("delta") or {}).get("tool_calls") or ()
        ]
        named_in = [(call_part.get(_get_call_type_and_text_key(call_part)[0]) or {}).get("name") for call_part in parts]
        is_whole = bool(parts) and all(named_in)  # as Mistral sends them
        for piece in split_words(content.text):
            yield build_event(content=piece)
        for number, call in enumerate(content.calls):
            kind, key = _get_call_type_and_text_key(call.native or {})
            named = {"index": number, "id": make_call_id(call, content.calls, number), "type": kind}
            function = {"name": call.name, key: call.arguments if is_whole else ""}
            yield build_event(tool_calls=[{**named, kind: function}])
            for piece in () if is_whole else split_in_half(call.arguments):
                yield build_event(tool_calls=[{"index": number, kind: {key: piece}}])
        yield {**last, "choices": [{**ending, "delta": {}, "finish_reason": _choose_finish_reason(content)}]}
        yield from (event for event in events[end:] if not event.get("choices"))  # what it used

    def is_last_event(self, event: bytes) -> bool:
        return is_done_marker(event)

    def replace_content(self, value: Any, content: AnswerContent) -> dict[str, Any]:
        # null, as in an answer of OpenAI's that only makes calls.
        message = {**value["choices"][0]["message"], "content": content.text or None}
        message.pop("tool_calls", None)
        if content.calls:
            message["tool_calls"] = [
                {
                    **(call.native or {"type": "function"}), "id": make_call_id(call, content.calls, number),
                    kind: {"name": call.name, key: call.arguments},
                }
                for number, call in enumerate(content.calls)
                for kind, key in [_get_call_type_and_text_key(call.native or {})]
            ]  # fmt: skip
        elif not content.text:
            message["content"] = ""
        return {
            **value,
            "choices": [{**value["choices"][0], "message": message, "finish_reason": _choose_finish_reason(content)}],
        }


def _get_call_type_and_text_key(call: Mapping[str, Any]) -> tuple[str, str]:
    """The key of a call's own part, which is its type too, and in it that of the text: a custom tool takes any text."""
    return ("custom", "input") if "custom" in call or call.get("type") == "custom" else ("function", "arguments")


def _iterate_first_choices(events: Sequence[Any]) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Each event that has a part of the first choice, and that part."""
    for event in events:
        for choice in event.get("choices") or ():
            if not choice.get("index"):
                yield event, choice


def _strip_event(event: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The rest of an event without its words and calls: a role, a thought; all of an event without choices."""
    if not event.get("choices"):
        yield dict(event)
    for _, choice in _iterate_first_choices([event]):
        delta = choice.get("delta") or {}
        if fields := {key: value for key, value in delta.items() if key not in ("content", "tool_calls")}:
            text_fields = {"content": ""} if delta.get("content") is not None else {}
            yield {**event, "choices": [{**choice, "delta": {**fields, **text_fields}}]}


def _choose_finish_reason(content: AnswerContent) -> str:
    return content.finish or ("tool_calls" if content.calls else "stop")


def text_or_empty(value: Any) -> str:
    return value if isinstance(value, str) else ""


def make_call_id(call: FunctionCall, calls: Sequence[FunctionCall], number: int, key: str = "id") -> str:
    """The id of a call: its own, or one made of it if an earlier call has the same block or there is none."""
    own_id = str((call.native or {}).get(key) or f"call_{number}")
    return own_id if not any(earlier.native is call.native for earlier in calls[:number]) else f"{own_id}_{number}"


def split_words(text: str) -> list[str]:
    """A text word by word, as a model says it."""
    return re.findall(r"\s*\S+|\s+$", text)


def split_in_half(text: str) -> tuple[str, ...]:
    """A text in two parts, since a call's arguments may be cut anywhere."""
    middle = (len(text) + 1) // 2
    return tuple(filter(None, (text[:middle], text[middle:])))


def truncate_json_text(text: str, share: float) -> str:
    """The beginning of a JSON object's text: a share of it, so much that it is no JSON."""
    return text[: min(len(text) - 1, max(1, int(len(text) * share)))] or "{"


def truncate_to_word_share(text: str, share: float) -> str:
    """The beginning of a text: a share of its words, at least one less than all."""
    words = text.split(" ")
    return " ".join(words[: min(len(words) - 1, int(len(words) * share))])


CHAT_ANSWERS = ChatAnswers()
