"""Finds parameters that an agent's framework fills in, such as a run's context. They are not arguments of a request.
They are found by annotation and by the names of classes, so no framework is imported."""

import inspect
import re
from collections.abc import Callable
from types import SimpleNamespace, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

MARKER = "Injected"
"""The start of a marker class's name: `Annotated[T, marker]` is injected if the marker's class or a base of it has such
a name."""
TYPES = {
    "RunContext": "",  # Pydantic AI
    "RunContextWrapper": "",  # the OpenAI Agents SDK
    "ToolContext": "",  # the same, Google's ADK, Strands
    "ToolRuntime": "",  # LangChain, as are the next four
    "RunnableConfig": "",
    "BaseCallbackManager": "",
    "BaseRunManager": "",
    "BaseStore": "langchain_core langgraph",
    "Runtime": "langgraph",
    "Context": "mcp fastmcp llama_index workflows",
    "CallbackContext": "google",
    "ReadonlyContext": "google",
    "InvocationContext": "google strands",
}
"""Classes whose objects are injected. A common name has the packages that it must come from."""
_NAME = re.compile(r"[A-Za-z_][\w.]*")


def injected(function: Callable[..., Any]) -> frozenset[str]:
    """The names of the function's parameters that its framework fills in."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):  # some functions written in C
        return frozenset()
    return frozenset(
        name for name, parameter in parameters.items() if _is_injected(_meaning(function, parameter.annotation))
    )


def unasked(function: Any) -> frozenset[str]:
    """The parameters that a caller does not pass: those that a framework injects, and the object of a method."""
    return injected(function) | receiver(function)


def receiver(function: Any) -> frozenset[str]:
    """The object parameter of a method that is given by its class, as in `Shop.order`."""
    path = getattr(function, "__qualname__", "").split(".")
    if not inspect.isfunction(function) or len(path) < 2 or path[-2] == "<locals>":
        return frozenset()
    kind: Any = function.__globals__.get(path[0])
    for name in path[1:-1]:
        kind = getattr(kind, name, None)
    if isinstance(kind, type) and isinstance(vars(kind).get(path[-1]), staticmethod):
        return frozenset()
    return frozenset(function.__code__.co_varnames[: min(1, function.__code__.co_argcount)])


def _meaning(function: Callable[..., Any], annotation: Any) -> Any:
    """The evaluated annotation; its text if it cannot be evaluated."""
    if not isinstance(annotation, str):
        return annotation
    whole = inspect.unwrap(function)
    names = getattr(getattr(whole, "__func__", whole), "__globals__", {})
    try:
        return get_type_hints(SimpleNamespace(__annotations__={"it": annotation}), names, include_extras=True)["it"]
    except Exception:  # noqa: BLE001 - whatever it names, such as a class that only a type checker imports
        return annotation


def _is_injected(annotation: Any) -> bool:
    if isinstance(annotation, str):
        # the same for an annotation's text
        names = [found.rpartition(".")[2] for found in _NAME.findall(annotation)]
        return any(TYPES.get(name) == "" or (name.startswith(MARKER) and "Annotated" in names) for name in names)
    origin = get_origin(annotation)
    if origin is Annotated:
        held, *markers = get_args(annotation)
        return _is_injected(held) or any(map(_is_marker, markers))
    if origin in (Union, UnionType):
        return any(map(_is_injected, get_args(annotation)))
    kind = origin or annotation
    return isinstance(kind, type) and any(_fits(each.__name__, each.__module__) for each in kind.__mro__)


def _is_marker(marker: Any) -> bool:
    kind = marker if isinstance(marker, type) else type(marker)
    return any(each.__name__.startswith(MARKER) for each in kind.__mro__)


def _fits(name: str, module: str) -> bool:
    packages = TYPES.get(name)
    return packages is not None and (not packages or module.partition(".")[0] in packages.split())
