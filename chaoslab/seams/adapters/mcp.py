"""The tools of an MCP server that runs in this process."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from chaoslab.seams.adapters import Adapter, is_a, of_schema


class Mcp(Adapter):
    """The MCP SDK: a tool is a server's `Tool` with a function, as its tool manager keeps it."""

    tools = "an MCP server's Tool"

    def recognises(self, thing: Any) -> bool:
        return is_a(thing, "mcp.server", "Tool") or is_a(thing, "fastmcp", "FunctionTool")

    def functions(self, tool: Any) -> Sequence[Callable[..., Any]]:
        return [tool.fn]

    def parameters(self, tool: Any) -> Collection[str] | None:
        return of_schema(tool.parameters)
