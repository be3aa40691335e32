"""A tool's result in MCP's JSON, as a server sends it, and results of the lab's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from chaoslab.seams.functions.wrapped import Returned
from chaoslab.seams.protocols import mcp


class LaterResult(dict[str, Any]):
    """A result in JSON, as the server sent it, behind a line that is no message."""

    def __init__(self, sent: Mapping[str, Any], line: str) -> None:
        super().__init__(sent)
        self.sent, self.line = sent, line


class ToolResult(Returned):
    """A tool's result. Its value is the structured content, else the text or the JSON in it. `data` is the result in
    JSON; `native_result` is what the caller gets. `schema`: the tool's output schema, if it is known."""

    enveloped = True

    def __init__(self, data: Mapping[str, Any], schema: Any = None) -> None:
        super().__init__(mcp.get_result_value(data))
        is_result = mcp.is_tool_result(data)
        # A question to the client, or a task that was accepted, has no value yet.
        if not is_result:
            self.__dict__["value"] = None
        self.__dict__.update(data=data, ok=not data.get("isError"), done=is_result, schema=schema)

    @classmethod
    def from_data(cls, data: Mapping[str, Any], schema: Any = None) -> ToolResult:
        """The result of this JSON."""
        return cls(data, schema)

    @classmethod
    def make_from_value(cls, value: Any) -> ToolResult:
        return cls.from_data(mcp.make_tool_result(value))

    @property
    def native_result(self) -> Any:
        return self.__dict__["data"]

    def with_leading_line(self, line: str) -> ToolResult:
        return self.from_data(LaterResult(self.__dict__["data"], line), self.__dict__["schema"])

    @property
    def error_words(self) -> str:
        return str(self.value)

    def with_value(self, value: Any) -> ToolResult:
        return self.from_data(mcp.replace_result_value(self.__dict__["data"], value), self.__dict__["schema"])

    def with_fitted_value(self, value: Any) -> ToolResult:
        fitted = mcp.fit_value_to_schema(value, self.value, self.__dict__["schema"])
        return self if fitted == self.value else self.with_value(fitted)

    def same_as(self, other: Any) -> bool:
        # By the whole message: a value may be equal under another error flag.
        return isinstance(other, ToolResult) and bool(other.native_result == self.native_result)


@dataclass(frozen=True)
class ResultForm:
    """The form of one tool's results, of a class of `ToolResult`. `schema` gives its output schema, if that is known by
    now."""

    protocol: ClassVar[str] = mcp.NAME
    of: type[ToolResult]
    schema: Callable[[], Any]

    def __call__(self, result: Any) -> ToolResult:
        return self.of(result, self.schema())

    def make_from_value(self, value: Any) -> ToolResult:
        """The result that the tool would give for a value of the lab's own."""
        schema = self.schema()
        return self.of.from_data(mcp.make_tool_result(value, schema), schema)
