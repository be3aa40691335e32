"""The parameters of a function that are no arguments of a request: what a framework passes along, and a method's own object.

A framework gives a tool its run's context, state or callbacks, under a parameter that the tool's schema does not have. Counted as arguments
they would make a retried call another one. They are known by the names of their types, so that no framework need be imported.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

INJECTED = frozenset(
    {
        "RunContext",  # PydanticAI
        "RunContextWrapper", "ToolContext",  # OpenAI Agents, Google ADK, strands
        "ToolRuntime", "Runtime", "BaseStore", "InjectedState", "InjectedStore", "InjectedToolCallId",  # LangGraph
        "RunnableConfig", "CallbackManagerForToolRun", "AsyncCallbackManagerForToolRun",  # LangChain
    }
)  # fmt: skip
"""Types by name of what frameworks pass along. A marker in `Annotated[…]` whose name begins with Injected is one too."""
_WORD = re.compile(r"[A-Za-z_]\w*")


def passed_along(function: Callable[..., Any]) -> frozenset[str]:
    """The names of a function's parameters that are no arguments of a request."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):  # some functions written in C
        return frozenset()
    found = {name for name, each in parameters.items() if _is_injected(each.annotation)}
    return frozenset(found) | _receiver(function)


def _receiver(function: Any) -> frozenset[str]:
    """The parameter by which a method that is named by its class (`Shop.order`) is given its object."""
    path = getattr(function, "__qualname__", "").split(".")
    if not inspect.isfunction(function) or len(path) < 2 or path[-2] == "<locals>":
        return frozenset()
    code = function.__code__
    return frozenset(code.co_varnames[: min(1, code.co_argcount)])


def _is_injected(annotation: Any) -> bool:
    if annotation is inspect.Parameter.empty:
        return False
    if isinstance(annotation, str):
        outer, inner = (_WORD.findall(part) for part in annotation.partition("|")[0].partition("[")[::2])
        if not outer or outer[-1] not in ("Annotated", "Optional", "Union"):
            return bool(outer) and outer[-1] in INJECTED
        return any(word in INJECTED or word.startswith("Injected") for word in inner)
    marks = getattr(annotation, "__metadata__", ())
    named = [mark if isinstance(mark, type) else type(mark) for mark in marks]
    if any(above.__name__.startswith("Injected") for kind in named for above in kind.__mro__):
        return True
    if marks:
        return _is_injected(annotation.__origin__)
    options = [o for o in getattr(annotation, "__args__", ()) if o is not type(None)]
    if getattr(annotation, "__origin__", None) is None and options:  # a | None
        return any(map(_is_injected, options))
    kind = getattr(annotation, "__origin__", annotation)
    if isinstance(kind, type):
        return any(above.__name__ in INJECTED for above in kind.__mro__)
    return any(map(_is_injected, options))  # Optional[…], Union[…]
