"""A model's answer, whole or streamed, whatever the format: its text, its tool calls, and the reason of its end."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from chaoslab.core.stream import DONE, is_done

CHAT_FAILED = {
    "message": "The server had an error while processing your request. Sorry about that!", "type": "server_error",
    "param": None, "code": None,
}  # fmt: skip


@dataclass(frozen=True)
class FunctionCall:
    """A call that a model wants made. `arguments`: the text of a JSON object, or another text. `native`: the format's
    own block, None for one that is new."""

    name: str
    arguments: str
    native: Mapping[str, Any] | None = None

    @property
    def values(self) -> dict[str, Any] | None:
        """The arguments; None if their text is no object."""
        try:
            found = json.loads(self.arguments)
        except (ValueError, RecursionError):
            return None
        return found if isinstance(found, dict) else None

    def with_values(self, values: Mapping[str, Any]) -> FunctionCall:
        return replace(self, arguments=json.dumps(dict(values), ensure_ascii=False))


@dataclass(frozen=True)
class AnswerContent:
    """The content of an answer. `finish`: "length", "content_filter", or empty for what is usual. `objects`: arguments
    are JSON objects there, so no other text can stand for them."""

    text: str
    calls: tuple[FunctionCall, ...] = ()
    finish: str = ""
    objects: bool = False


class Answers(ABC):
    """The answers of one format. An event of a stream is the JSON of its data."""

    @abstractmethod
    def said(self, value: Any) -> AnswerContent | None:
        """The content of a whole answer's JSON; None if this is no answer of the format."""

    @abstractmethod
    def with_said(self, value: Any, said: AnswerContent) -> dict[str, Any]:
        """The whole answer with another content. Other parts of it stay."""

    @abstractmethod
    def content_of(self, events: Sequence[Any]) -> AnswerContent | None:
        """The content of a streamed answer; None if it is none of the format, or did not end as one should. Raises
        LookupError, TypeError, AttributeError, ValueError: it has another form."""

    @abstractmethod
    def retold(self, events: Sequence[Any], said: AnswerContent) -> Iterator[dict[str, Any]]:
        """The events of a streamed answer that was heard, with another content. Other parts of it stay."""

    @abstractmethod
    def closing(self, events: Sequence[Any]) -> bytes:
        """The format's last event, for a stream that has said these events and ends now. Raises as `heard` does."""

    @abstractmethod
    def closes(self, event: bytes) -> bool:
        """Tells if the event is the format's last one."""

    @abstractmethod
    def failing(self, events: Sequence[Any]) -> bytes:
        """The format's event for an answer that fails behind these events, when its status was sent already."""

    ping = b": keep-alive\n\n"
    """An event by which the format shows that a stream goes on; by default a comment."""


class ChatAnswers(Answers):
    """Those of OpenAI's chat completions."""

    def content_of(self, events: Sequence[Any]) -> AnswerContent | None:
        text, finished = "", False
        made: dict[Any, dict[str, Any]] = {}
        for _, choice in _choices(events):
            delta = choice.get("delta") or {}
            text += delta.get("content") or ""
            for part in delta.get("tool_calls") or ():
                call = made.setdefault(part.get("index"), {"type": "function", "function": {}})
                named, said = call["function"], part.get("function") or {}
                call |= {key: part[key] for key in ("id", "type") if part.get(key)}
                call["function"] = {
                    key: (named.get(key) or "") + (said.get(key) or "") for key in ("name", "arguments")
                }
            finished = finished or bool(choice.get("finish_reason"))
        return AnswerContent(text, tuple(_call(call, call["function"]) for call in made.values())) if finished else None

    def retold(self, events: Sequence[Any], said: AnswerContent) -> Iterator[dict[str, Any]]:
        choices = list(_choices(events))
        (head, first), (last, ending) = choices[0], next(each for each in choices if each[1].get("finish_reason"))
        end = next(place for place, event in enumerate(events) if event is last)
        for event in events[:end]:
            yield from _silent(event)
        base = {key: value for key, value in head.items() if key not in ("x_groq", "usage") or value is None}

        def told(**delta: Any) -> dict[str, Any]:
            return {**base, "choices": [{**first, "delta": delta, "finish_reason": None}]}

        parts = [part for _, choice in choices for part in (choice.get("delta") or {}).get("tool_calls") or ()]
        whole = bool(parts) and all((part.get("function") or {}).get("name") for part in parts)  # as Mistral sends them
        for piece in pieces(said.text):
            yield told(content=piece)
        for number, call in enumerate(said.calls):
            named = {"index": number, "id": new_id(call, said.calls, number), "type": "function"}
            begun = {"name": call.name, "arguments": call.arguments if whole else ""}
            yield told(tool_calls=[{**named, "function": begun}])
            for piece in () if whole else halves(call.arguments):
                yield told(tool_calls=[{"index": number, "function": {"arguments": piece}}])
        yield {**last, "choices": [{**ending, "delta": {}, "finish_reason": _finish(said)}]}
        yield from (event for event in events[end:] if not event.get("choices"))  # what it used

    def closing(self, events: Sequence[Any]) -> bytes:  # noqa: ARG002 - it is always the same
        return DONE

    def closes(self, event: bytes) -> bool:
        return is_done(event)

    def failing(self, events: Sequence[Any]) -> bytes:  # noqa: ARG002 - it is always the same
        return b"event: error\ndata: " + json.dumps({"error": CHAT_FAILED}).encode() + b"\n\n"

    def said(self, value: Any) -> AnswerContent | None:
        message = self._message(value)
        if message is None:
            return None
        calls = message.get("tool_calls")
        made = [call for call in calls if isinstance(call, Mapping)] if isinstance(calls, list) else []
        functions = [(call, call.get("function")) for call in made]
        told = tuple(_call(call, function) for call, function in functions if isinstance(function, Mapping))
        return AnswerContent(text_of(message.get("content")), told)

    def with_said(self, value: Any, said: AnswerContent) -> dict[str, Any]:
        message = {**(self._message(value) or {}), "content": said.text or None}
        message.pop("tool_calls", None)
        if said.calls:
            message["tool_calls"] = [
                {
                    **(call.native or {"type": "function"}), "id": new_id(call, said.calls, number),
                    "function": {"name": call.name, "arguments": call.arguments},
                }
                for number, call in enumerate(said.calls)
            ]  # fmt: skip
        elif not said.text:
            message["content"] = ""
        return {**value, "choices": [{**value["choices"][0], "message": message, "finish_reason": _finish(said)}]}

    @staticmethod
    def _message(value: Any) -> Mapping[str, Any] | None:
        choices = value.get("choices") if isinstance(value, Mapping) else None
        first = choices[0] if isinstance(choices, list) and choices else None
        message = first.get("message") if isinstance(first, Mapping) else None
        return message if isinstance(message, Mapping) else None


def _choices(events: Sequence[Any]) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Each event that has a part of the first choice, and that part."""
    for event in events:
        for choice in event.get("choices") or ():
            if not choice.get("index"):
                yield event, choice


def _silent(event: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The rest of an event without its words and calls: a role, a thought; all of an event without choices."""
    if not event.get("choices"):
        yield dict(event)
    for _, choice in _choices([event]):
        delta = choice.get("delta") or {}
        if kept := {key: value for key, value in delta.items() if key not in ("content", "tool_calls")}:
            words = {"content": ""} if delta.get("content") is not None else {}
            yield {**event, "choices": [{**choice, "delta": {**kept, **words}}]}


def _finish(said: AnswerContent) -> str:
    return said.finish or ("tool_calls" if said.calls else "stop")


def _call(native: Mapping[str, Any], function: Mapping[str, Any]) -> FunctionCall:
    return FunctionCall(str(function.get("name")), str(function.get("arguments")), native)


def text_of(value: Any) -> str:
    return value if isinstance(value, str) else ""


def new_id(call: FunctionCall, calls: Sequence[FunctionCall], number: int, key: str = "id") -> str:
    """The id of a call: its own, or one made of it if an earlier call has the same block or there is none."""
    own = str((call.native or {}).get(key) or f"call_{number}")
    return own if not any(other.native is call.native for other in calls[:number]) else f"{own}_{number}"


def pieces(text: str) -> list[str]:
    """A text word by word, as a model says it."""
    return re.findall(r"\s*\S+|\s+$", text)


def halves(text: str) -> tuple[str, ...]:
    """A text in two parts, since a call's arguments may be cut anywhere."""
    middle = (len(text) + 1) // 2
    return tuple(filter(None, (text[:middle], text[middle:])))


def text_cut(text: str, part: float) -> str:
    """The beginning of a JSON object's text: a share of it, so much that it is no JSON."""
    return text[: min(len(text) - 1, max(1, int(len(text) * part)))] or "{"


def words_cut(text: str, part: float) -> str:
    """The beginning of a text: a share of its words, at least one less than all."""
    words = text.split(" ")
    return " ".join(words[: min(len(words) - 1, int(len(words) * part))])


CHAT_ANSWERS = ChatAnswers()
