"""Google ADK's function tools."""

import inspect
from collections.abc import Callable, Collection, Sequence
from typing import Any

from chaoslab.seams.adapters import Adapter, is_a


class GoogleAdk(Adapter):
    """Google's Agent Development Kit: a tool is a `FunctionTool`."""

    tools = "an ADK FunctionTool"

    def recognises(self, thing: Any) -> bool:
        return is_a(thing, "google.adk", "FunctionTool")

    def functions(self, tool: Any) -> Sequence[Callable[..., Any]]:
        return [tool.func]

    def parameters(self, tool: Any) -> Collection[str] | None:
        # The ADK notes itself which parameters its model is not shown.
        return set(inspect.signature(tool.func).parameters).difference(tool._ignore_params)
