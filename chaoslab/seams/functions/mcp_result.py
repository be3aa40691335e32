"""A tool's result in MCP's JSON, as a server sends it: its meaning, and results of the lab's own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from chaoslab.seams.functions.wrapped import Returned


class ToolResult(Returned):
    """A tool's result. Its value is the structured content, else the text or the JSON in it. `data` is the result in
    JSON; `native` is what the caller gets."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        super().__init__(_meaning(data))
        self.__dict__.update(data=data, ok=not data.get("isError"))

    @classmethod
    def made_of(cls, value: Any) -> ToolResult:
        return cls(said(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)))

    @property
    def native(self) -> Any:
        return self.__dict__["data"]

    @property
    def error_words(self) -> str:
        return str(self.value)

    def with_value(self, value: Any) -> ToolResult:
        return type(self)(self.changed(value))

    def changed(self, value: Any) -> dict[str, Any]:
        """The result in JSON with another value."""
        data = self.__dict__["data"]
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        found = {**data, **said(text)}
        if (structure := data.get("structuredContent")) is not None:
            found["structuredContent"] = {"result": value} if _is_wrapped(structure) else value
        return found

    def same_as(self, other: Any) -> bool:
        return isinstance(other, ToolResult) and bool(other.native == self.native)


def said(text: str) -> dict[str, Any]:
    """A result that is a text."""
    return {"content": [{"type": "text", "text": text}]}


def refused(name: str, status: int, message: str) -> dict[str, Any]:
    """A result that says it is an error, as a server makes it of an exception."""
    return {**said(f"Error executing tool {name}: {status} {message}"), "isError": True}


def _meaning(data: Mapping[str, Any]) -> Any:
    if (structure := data.get("structuredContent")) is not None:
        return structure["result"] if _is_wrapped(structure) else structure
    content = data.get("content") or []
    texts = [_parsed(part["text"]) for part in content if part.get("type") == "text"]
    return texts[0] if len(texts) == len(content) == 1 else texts or [part.get("type", "") for part in content]


def _parsed(text: str) -> Any:
    """The object or list that the text is in JSON, else the text."""
    try:
        value = json.loads(text) if text.lstrip()[:1] in ("{", "[") else text
    except (ValueError, RecursionError):
        value = text
    return value


def _is_wrapped(structure: Any) -> bool:
    """True for the object in which the SDK wraps a result that is none."""
    return isinstance(structure, dict) and list(structure) == ["result"]
