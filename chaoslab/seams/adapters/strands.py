"""Strands' decorated functions."""

from collections.abc import Callable, Collection, Sequence
from typing import Any

from chaoslab.seams.adapters import Adapter, is_a, of_schema


class Strands(Adapter):
    """Strands: a tool is a `DecoratedFunctionTool`."""

    tools = "a Strands tool"

    def recognises(self, thing: Any) -> bool:
        return is_a(thing, "strands", "DecoratedFunctionTool")

    def name(self, tool: Any) -> str:
        return str(tool.tool_name)

    def functions(self, tool: Any) -> Sequence[Callable[..., Any]]:
        return [tool._tool_func]

    def parameters(self, tool: Any) -> Collection[str] | None:
        return of_schema(tool.tool_spec["inputSchema"]["json"])
