"""The messages in a request to a model, whatever the format: where they stand, and the role of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

TOOL = "tool"
"""The role of a message that answers a call, and that no provider takes without the message before it."""


def _role(message: Mapping[str, Any]) -> str:
    role = message.get("role")
    return "system" if role == "developer" else str(role)


@dataclass(frozen=True)
class Dialog:
    """The place of the messages in a request's JSON: the field `key`. `role` gives the role of a message: system, user,
    assistant or tool."""

    key: str = "messages"
    role: Callable[[Mapping[str, Any]], str] = _role

    def messages(self, value: Any) -> list[Any]:
        """The messages of a request; empty if it has none."""
        found = value.get(self.key) if isinstance(value, Mapping) else None
        return [each for each in found if isinstance(each, Mapping)] if isinstance(found, list) else []

    def with_messages(self, value: Mapping[str, Any], messages: list[Any]) -> dict[str, Any]:
        """The request with other messages."""
        return {**value, self.key: messages}


CHAT = Dialog()
"""The messages of OpenAI's chat completions."""
