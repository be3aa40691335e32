"""The messages in a request to a model, whatever the format: where they stand, and the role of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from chaoslab.core.answers import CHAT_ANSWERS, Answers

TOOL = "tool"
"""The role of a message that answers a call, and that no provider takes without the message before it."""


TEXTS = frozenset({"content", "text", "parts", "output", "functionResponse", "function_response", "response", "result"})
"""The fields of a message that hold its words, whatever the format, or lead to them."""


def _role(message: Mapping[str, Any]) -> str:
    role = message.get("role")
    return "system" if role == "developer" else str(role)


def _from_user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


@dataclass(frozen=True)
class Dialog:
    """The place of the messages in a request's JSON: the field `key`. `role` gives the role of a message: system, user,
    assistant or tool. `from_user` makes a user's message of a text. `bare`: a text may stand for all messages, as the
    user's only one. `answers` reads the model's answers."""

    key: str = "messages"
    role: Callable[[Mapping[str, Any]], str] = _role
    from_user: Callable[[str], dict[str, Any]] = _from_user
    bare: bool = False
    answers: Answers = CHAT_ANSWERS

    def messages(self, value: Any) -> list[Any]:
        """The messages of a request; empty if it has none."""
        found = value.get(self.key) if isinstance(value, Mapping) else None
        if self.bare and isinstance(found, str):
            return [self.from_user(found)]
        return [each for each in found if isinstance(each, Mapping)] if isinstance(found, list) else []

    def with_messages(self, value: Mapping[str, Any], messages: list[Any]) -> dict[str, Any]:
        """The request with other messages."""
        return {**value, self.key: messages}

    def units(self, value: Any) -> list[Unit]:
        """The messages of a request, each together with the results behind it, which may not stand without it."""
        units: list[Unit] = []
        for message in self.messages(value):
            role = self.role(message)
            if role == TOOL and units:
                units[-1].messages.append(message)
            else:
                units.append(Unit(role, [message]))
        return units

    def with_units(self, value: Mapping[str, Any], units: Iterable[Unit]) -> dict[str, Any]:
        """The request with other messages."""
        return self.with_messages(value, [message for unit in units for message in unit.messages])


@dataclass
class Unit:
    """A message and the results behind it. `role`: the role of the first message."""

    role: str
    messages: list[Any]

    @property
    def free(self) -> bool:
        """False for a message of the system, and for a result that answers no message of this request."""
        return self.role not in ("system", TOOL)

    @property
    def calls(self) -> bool:
        """True if results stand behind the message."""
        return len(self.messages) > 1


def reworded(message: Any, change: Callable[[str], str]) -> Any:
    """A message with each of its texts changed. A model's thoughts, which a provider signs, stay."""
    if isinstance(message, Mapping) and message.get("type") in ("reasoning", "thinking"):
        return message
    return _reworded(message, change)


def _reworded(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_reworded(each, change) if isinstance(each, Mapping) else each for each in value]
    if isinstance(value, Mapping):
        return {key: _reworded(each, change) if key in TEXTS else each for key, each in value.items()}
    return value


def words_of(message: Any) -> str:
    """The texts of a message, one a line."""
    found: list[str] = []

    def collect(text: str) -> str:
        found.append(text)
        return text

    reworded(message, collect)
    return "\n".join(found)


CHAT = Dialog()
"""The messages of OpenAI's chat completions."""
