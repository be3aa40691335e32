"""Finds the user's function in an object that stands for it: a closure of a framework, or a tool of an unknown one; and
the parameters that an agent's framework fills in, such as a run's context, which are no arguments of a request. They
are found by annotation and by the names of classes, so no framework is imported."""

import inspect
import re
import sys
from collections.abc import Callable, Iterator
from functools import partial
from types import FunctionType, MethodType, SimpleNamespace, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from chaoslab.seams.functions.references import is_library_module

# The attributes in which tool objects keep their function; the first is that of Python's own decorators.
WAYS = ("__wrapped__", "fn", "func", "method", "function", "_fn", "_func", "_method", "_function")
# The methods by which frameworks call their tools, also with an underscore or an "a" before them.
ENTRIES = ("run", "execute", "invoke", "call", "forward", "handle")
DEPTH = 4
_NAME = re.compile(r"[A-Za-z_][\w.-]*")


def find_enclosed_function(function: Any, depth: int = DEPTH) -> Callable[..., Any] | None:
    """The user's function around which a framework has put `function`: the nearest one that a closure of it holds and
    that is of another package; None if there is none."""
    unwrapped: Callable[..., Any] = inspect.unwrap(function)
    if unwrapped is not function:
        return unwrapped
    package, near = _top_package(function), list(_list_closure_functions(function))
    for candidate_function in near:
        if _top_package(candidate_function) != package:
            inner: Callable[..., Any] = inspect.unwrap(candidate_function)
            return inner
    deeper = (find_enclosed_function(candidate_function, depth - 1) for candidate_function in near if depth)
    return next((candidate_function for candidate_function in deeper if candidate_function is not None), None)


def is_neither_function_nor_class(thing: Any) -> bool:
    """True if it is neither a function of any kind, a partial nor a class."""
    return not (inspect.isroutine(thing) or isinstance(thing, partial | type))


def find_held_function(thing: Any, depth: int = DEPTH) -> Callable[..., Any] | None:
    """The one function that an object calls when it is called or run: the one in an attribute of `WAYS`, else the only
    one that its `__call__` closes over; None if there is none such."""
    if not is_neither_function_nor_class(thing) or not depth:
        return None
    for name in WAYS:
        value = _read_attribute(thing, name)
        if value is None or isinstance(value, type) or not callable(value):
            continue
        if is_neither_function_nor_class(value):
            value = find_held_function(value, depth - 1) or value
        elif is_library_module(str(getattr(value, "__module__", ""))):
            value = find_enclosed_function(value) or value
        function: Callable[..., Any] = value
        return function
    call = getattr(type(thing), "__call__", None)  # noqa: B004 - the class's own, as Python calls it
    enclosed_functions = [
        candidate for candidate in _list_closure_functions(call) if not is_library_module(candidate.__module__)
    ]
    return enclosed_functions[0] if len(enclosed_functions) == 1 else None


def get_tool_name(thing: Any) -> str:
    """The name that an object has for itself as a tool; empty if it has none."""
    names = (_read_attribute(thing, attribute) for attribute in ("name", "__name__"))
    return next((name for name in names if isinstance(name, str) and _NAME.fullmatch(name)), "")


def list_entry_methods(thing: Any) -> list[str]:
    """The attributes of an object whose function its framework may call in place of `__call__`; empty if `__call__` is
    the user's own and there is no other way in."""
    kind = thing if isinstance(thing, type) else type(thing)
    attributes = [
        name
        for name, value in ({} if kind is thing else getattr(thing, "__dict__", {})).items()
        if isinstance(value, FunctionType | MethodType) and not is_library_module(value.__module__)
    ]
    methods = [
        name
        for name in dir(kind)
        if name.lstrip("_").removeprefix("a") in ENTRIES and inspect.isroutine(inspect.getattr_static(kind, name))
    ]
    call = getattr(kind, "__call__", None)  # noqa: B004 - the class's own, as Python calls it
    foreign = (
        type(call) is FunctionType
        and is_library_module(call.__module__)
        and _top_package(call) not in sys.stdlib_module_names
    )
    return [*attributes, *methods] or ["__call__"] * foreign


def _read_attribute(thing: Any, name: str) -> Any:
    """The attribute's value; None if it is one that `__getattr__` makes up, or cannot be read."""
    try:
        # Static first: `__getattr__` of a mock makes up any attribute.
        inspect.getattr_static(thing, name)
        return getattr(thing, name)
    except Exception:  # noqa: BLE001 - a property of the object's own
        return None


def _list_closure_functions(function: Any) -> Iterator[FunctionType]:
    for cell in getattr(function, "__closure__", None) or ():
        try:
            value = cell.cell_contents
        except ValueError:  # an empty cell
            continue
        if isinstance(value, FunctionType):
            yield value


def _top_package(function: Any) -> str:
    return str(getattr(function, "__module__", "") or "").partition(".")[0]


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
_NAME_IN_TEXT = re.compile(r"[A-Za-z_][\w.]*")


def find_framework_parameters(function: Callable[..., Any]) -> frozenset[str]:
    """The names of the function's parameters that its framework fills in."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):  # some functions written in C
        return frozenset()
    return frozenset(
        name
        for name, parameter in parameters.items()
        if _is_framework_annotation(_evaluate_annotation(function, parameter.annotation))
    )


def find_unpassed_parameters(function: Any) -> frozenset[str]:
    """The parameters that a caller does not pass: those that a framework injects, and the object of a method."""
    return find_framework_parameters(function) | find_self_parameter(function)


def find_self_parameter(function: Any) -> frozenset[str]:
    """The object parameter of a method that is given by its class, as in `Shop.order`."""
    path = getattr(function, "__qualname__", "").split(".")
    # A function within a function is no method.
    if not inspect.isfunction(function) or len(path) < 2 or path[-2] == "<locals>":
        return frozenset()
    kind: Any = function.__globals__.get(path[0])
    for name in path[1:-1]:
        kind = getattr(kind, name, None)
    # A static method has no object.
    if isinstance(kind, type) and isinstance(vars(kind).get(path[-1]), staticmethod):
        return frozenset()
    return frozenset(function.__code__.co_varnames[: min(1, function.__code__.co_argcount)])


def _evaluate_annotation(function: Callable[..., Any], annotation: Any) -> Any:
    """The evaluated annotation; its text if it cannot be evaluated."""
    if not isinstance(annotation, str):
        return annotation
    unwrapped = inspect.unwrap(function)
    names = getattr(getattr(unwrapped, "__func__", unwrapped), "__globals__", {})
    try:
        # By typing's own evaluation, which knows aliases and `Annotated`.
        return get_type_hints(SimpleNamespace(__annotations__={"it": annotation}), names, include_extras=True)["it"]
    except Exception:  # noqa: BLE001 - whatever it names, such as a class that only a type checker imports
        return annotation


def _is_framework_annotation(annotation: Any) -> bool:
    if isinstance(annotation, str):
        # the same for an annotation's text
        names = [path.rpartition(".")[2] for path in _NAME_IN_TEXT.findall(annotation)]
        # A text alone cannot tell the package, so only names that nobody else uses count.
        return any(TYPES.get(name) == "" or (name.startswith(MARKER) and "Annotated" in names) for name in names)
    origin = get_origin(annotation)
    if origin is Annotated:
        inner, *markers = get_args(annotation)
        return _is_framework_annotation(inner) or any(map(_is_framework_marker, markers))
    if origin in (Union, UnionType):
        return any(map(_is_framework_annotation, get_args(annotation)))
    kind = origin or annotation
    return isinstance(kind, type) and any(_is_framework_type(base.__name__, base.__module__) for base in kind.__mro__)


def _is_framework_marker(marker: Any) -> bool:
    kind = marker if isinstance(marker, type) else type(marker)
    return any(base.__name__.startswith(MARKER) for base in kind.__mro__)


def _is_framework_type(name: str, module: str) -> bool:
    # A name such as Context is everybody's, so its package has to fit.
    packages = TYPES.get(name)
    return packages is not None and (not packages or module.partition(".")[0] in packages.split())
