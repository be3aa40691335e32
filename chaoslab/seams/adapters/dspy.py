"""DSPy's tools."""

from collections.abc import Callable, Collection, Sequence
from typing import Any

from chaoslab.seams.adapters import Adapter, is_a


class Dspy(Adapter):
    """DSPy: a tool is a `Tool`."""

    tools = "a DSPy Tool"

    def recognises(self, thing: Any) -> bool:
        return is_a(thing, "dspy", "Tool")

    def functions(self, tool: Any) -> Sequence[Callable[..., Any]]:
        return [tool.func]

    def parameters(self, tool: Any) -> Collection[str] | None:
        return set(tool.args)
