"""AG2's function tools."""

import inspect
from collections.abc import Callable, Collection, Sequence
from typing import Any

from chaoslab.seams.adapters import Adapter, find_enclosed_function, is_a, of_schema


class Ag2(Adapter):
    """AG2: a tool is a `FunctionTool`."""

    tools = "an AG2 FunctionTool"

    def recognises(self, thing: Any) -> bool:
        return is_a(thing, "ag2", "FunctionTool")

    def functions(self, tool: Any) -> Sequence[Callable[..., Any]]:
        call = tool.model.call
        # AG2 puts its own functions around the user's.
        return (
            [find_enclosed_function(call) or inspect.unwrap(call)]
            if str(call.__module__).startswith("ag2.")
            else [call]
        )

    def parameters(self, tool: Any) -> Collection[str] | None:
        return of_schema(tool.schema.function.parameters)
