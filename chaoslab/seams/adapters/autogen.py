"""AutoGen's function tools."""

from collections.abc import Callable, Collection, Sequence
from typing import Any

from chaoslab.seams.adapters import Adapter, is_a, of_schema


class Autogen(Adapter):
    """AutoGen: a tool is a `FunctionTool`, or another `BaseTool` with `run`."""

    tools = "an AutoGen tool"

    def recognises(self, thing: Any) -> bool:
        return is_a(thing, "autogen_core", "BaseTool")

    def functions(self, tool: Any) -> Sequence[Callable[..., Any]]:
        # `run` of a BaseTool that a user wrote; a FunctionTool calls its function.
        return [getattr(tool, "_func", None) or tool.run]

    def parameters(self, tool: Any) -> Collection[str] | None:
        # Such a `run` takes the arguments as one object.
        return of_schema(tool.schema.get("parameters")) if hasattr(tool, "_func") else {"args"}
