"""A model's whole answer, whatever the format: its text, the tool calls in it, and the reason why it ended."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

FINISHES = ("length", "content_filter")
"""The reasons, beside the usual one, for which an answer may end."""


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
class Said:
    """The content of an answer. `finish`: one of `FINISHES`, or empty for what is usual."""

    text: str
    calls: tuple[FunctionCall, ...] = ()
    finish: str = ""


class Answers(ABC):
    """The whole answers of one format. `objects`: arguments are JSON objects there, so no other text can stand for
    them."""

    objects: ClassVar[bool] = False

    @abstractmethod
    def said(self, value: Any) -> Said | None:
        """The content of an answer's JSON; None if this is no answer of the format."""

    @abstractmethod
    def with_said(self, value: Any, said: Said) -> dict[str, Any]:
        """The answer with another content. Other parts of it stay."""


class ChatAnswers(Answers):
    """Those of OpenAI's chat completions."""

    def said(self, value: Any) -> Said | None:
        message = self._message(value)
        if message is None:
            return None
        calls = message.get("tool_calls")
        made = [call for call in calls if isinstance(call, Mapping)] if isinstance(calls, list) else []
        functions = [(call, call.get("function")) for call in made]
        told = tuple(_call(call, function) for call, function in functions if isinstance(function, Mapping))
        return Said(text_of(message.get("content")), told)

    def with_said(self, value: Any, said: Said) -> dict[str, Any]:
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
        finish = said.finish or ("tool_calls" if said.calls else "stop")
        return {**value, "choices": [{**value["choices"][0], "message": message, "finish_reason": finish}]}

    @staticmethod
    def _message(value: Any) -> Mapping[str, Any] | None:
        choices = value.get("choices") if isinstance(value, Mapping) else None
        first = choices[0] if isinstance(choices, list) and choices else None
        message = first.get("message") if isinstance(first, Mapping) else None
        return message if isinstance(message, Mapping) else None


def _call(native: Mapping[str, Any], function: Mapping[str, Any]) -> FunctionCall:
    return FunctionCall(str(function.get("name")), str(function.get("arguments")), native)


def text_of(value: Any) -> str:
    return value if isinstance(value, str) else ""


def new_id(call: FunctionCall, calls: Sequence[FunctionCall], number: int, key: str = "id") -> str:
    """The id of a call: its own, or one made of it if an earlier call has the same block or there is none."""
    own = str((call.native or {}).get(key) or f"call_{number}")
    return own if not any(other.native is call.native for other in calls[:number]) else f"{own}_{number}"


def words_cut(text: str, part: float) -> str:
    """The beginning of a text: a share of its words, at least one less than all."""
    words = text.split(" ")
    return " ".join(words[: min(len(words) - 1, int(len(words) * part))])


CHAT_ANSWERS = ChatAnswers()
