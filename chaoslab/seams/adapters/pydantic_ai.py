"""Pydantic AI's tools."""

from collections.abc import Callable, Collection, Sequence
from typing import Any

from chaoslab.seams.adapters import Adapter, is_a, of_schema


class PydanticAi(Adapter):
    """Pydantic AI: a tool is a `Tool`."""

    tools = "a Pydantic AI Tool"

    def recognises(self, thing: Any) -> bool:
        return is_a(thing, "pydantic_ai", "Tool")

    def functions(self, tool: Any) -> Sequence[Callable[..., Any]]:
        return [tool.function]

    def parameters(self, tool: Any) -> Collection[str] | None:
        return of_schema(tool.function_schema.json_schema)
