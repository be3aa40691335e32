"""Anthropic's function tools, which its tool runner calls."""

from collections.abc import Callable, Collection, Sequence
from typing import Any

from chaoslab.seams.adapters import Adapter, is_a, of_schema


class Anthropic(Adapter):
    """Anthropic's SDK: a tool is what `beta_tool` or `beta_async_tool` makes of a function."""

    tools = "an Anthropic function tool"

    def recognises(self, thing: Any) -> bool:
        return is_a(thing, "anthropic", "BaseFunctionTool")

    def functions(self, tool: Any) -> Sequence[Callable[..., Any]]:
        return [tool.func]

    def parameters(self, tool: Any) -> Collection[str] | None:
        return of_schema(tool.input_schema)
