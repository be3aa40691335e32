"""Agno's functions: a validator stands around the user's own."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from chaoslab.seams.adapters import Adapter, is_a


class Agno(Adapter):
    """Agno: a tool is a `Function`. Its schema is made when an agent runs, so parameters go by their annotations."""

    tools = "an agno Function"

    def recognises(self, thing: Any) -> bool:
        return is_a(thing, "agno", "Function")

    def functions(self, tool: Any) -> Sequence[Callable[..., Any]]:
        # agno validates arguments by pydantic, whose wrapper names the function.
        return [inspect.unwrap(tool.entrypoint)]
