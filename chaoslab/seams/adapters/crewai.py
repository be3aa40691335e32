"""CrewAI's tools."""

from collections.abc import Callable, Collection, Sequence
from typing import Any

from chaoslab.seams.adapters import Adapter, is_a


class Crewai(Adapter):
    """CrewAI: a tool is a `BaseTool`, with a function or with `_run` of its own, or a `CrewStructuredTool`."""

    tools = "a CrewAI tool"

    def recognises(self, thing: Any) -> bool:
        return is_a(thing, "crewai", "BaseTool") or is_a(thing, "crewai", "CrewStructuredTool")

    def functions(self, tool: Any) -> Sequence[Callable[..., Any]]:
        function = getattr(tool, "func", None) or tool._run
        # A structured tool made of another one calls that one's method.
        owner = getattr(function, "__self__", None)
        return self.functions(owner) if owner is not tool and self.recognises(owner) else [function]

    def parameters(self, tool: Any) -> Collection[str] | None:
        return set(tool.args_schema.model_fields)
