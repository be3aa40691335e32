"""The results of tools in a request to a model, whatever the format: the tool of each, and its content. The formats
differ in their fields, and no field has two meanings, so the fields tell the format."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class FoundToolResult:
    """A result. `tool`: the tool's name. `holder`: the object in the request whose field `key` is the content."""

    tool: str
    holder: dict[str, Any]
    key: str

    @property
    def content(self) -> Any:
        return self.holder[self.key]


def tool_results(messages: Sequence[Any]) -> list[FoundToolResult]:
    """The results in these messages, the oldest first. One whose call is not there is left out."""
    names: dict[Any, str] = {}
    found = []
    for part in (part for message in messages for part in _parts(message)):
        match part:
            case {"type": "function_call", "call_id": str(place), "name": str(name)}:  # OpenAI's responses
                names[place] = name
            case {"type": "tool_use", "id": str(place), "name": str(name)}:  # Anthropic's messages
                names[place] = name
            case {"id": str(place), "function": {"name": str(name)}}:  # OpenAI's chat completions
                names[place] = name
            case {"type": "function_call_output", "call_id": str(place), "output": _} if place in names:
                found.append(FoundToolResult(names[place], part, "output"))
            case {"type": "tool_result", "tool_use_id": str(place), "content": _} if place in names:
                found.append(FoundToolResult(names[place], part, "content"))
            case {"role": "tool", "tool_call_id": str(place), "content": _} if place in names:
                found.append(FoundToolResult(names[place], part, "content"))
            case {"functionResponse": {"name": str(name), "response": _}}:  # Gemini
                found.append(FoundToolResult(name, part["functionResponse"], "response"))
            case {"function_response": {"name": str(name), "response": _}}:
                found.append(FoundToolResult(name, part["function_response"], "response"))
    return found


def _parts(message: Any) -> Iterator[Any]:
    """The message, and the objects in it that may be calls or results."""
    yield message
    if isinstance(message, Mapping):
        for key in ("tool_calls", "content", "parts"):
            inner = message.get(key)
            yield from inner if isinstance(inner, list) else ()
