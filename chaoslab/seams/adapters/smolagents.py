"""Smolagents' tools: `forward` of a class of the user's, or of one that is made for a function."""

import inspect
from collections.abc import Callable, Collection, Sequence
from typing import Any

from chaoslab.seams.adapters import Adapter, is_a


class Smolagents(Adapter):
    """Smolagents: a tool is a `Tool`."""

    tools = "a smolagents Tool"

    def recognises(self, thing: Any) -> bool:
        return is_a(thing, "smolagents", "Tool")

    def functions(self, tool: Any) -> Sequence[Callable[..., Any]]:
        # A tool of a function is a class whose `forward` wraps it.
        return [inspect.unwrap(tool.forward)]

    def parameters(self, tool: Any) -> Collection[str] | None:
        return set(tool.inputs)
