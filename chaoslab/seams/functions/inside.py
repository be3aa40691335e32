"""Finds the user's function in an object that stands for it: a closure of a framework, or a tool of an unknown one."""

import inspect
import re
import sys
from collections.abc import Callable, Iterator
from functools import partial
from types import FunctionType, MethodType
from typing import Any

from chaoslab.seams.functions.references import is_installed

WAYS = ("__wrapped__", "fn", "func", "method", "function", "_fn", "_func", "_method", "_function")
"""The attributes in which tool objects keep their function; the first is that of Python's own decorators."""
ENTRIES = ("run", "execute", "invoke", "call", "forward", "handle")
"""The methods by which frameworks call their tools, also with an underscore or an "a" before them."""
DEPTH = 4
_NAME = re.compile(r"[A-Za-z_][\w.-]*")


def enclosed(function: Any, depth: int = DEPTH) -> Callable[..., Any] | None:
    """The user's function around which a framework has put `function`: the nearest one that a closure of it holds and
    that is of another package; None if there is none."""
    whole: Callable[..., Any] = inspect.unwrap(function)
    if whole is not function:
        return whole
    package, near = _top(function), list(_closed_over(function))
    for each in near:
        if _top(each) != package:
            found: Callable[..., Any] = inspect.unwrap(each)
            return found
    deeper = (enclosed(each, depth - 1) for each in near if depth)
    return next((each for each in deeper if each is not None), None)


def is_object(thing: Any) -> bool:
    """True if it is neither a function of any kind, a partial nor a class."""
    return not (inspect.isroutine(thing) or isinstance(thing, partial | type))


def function_in(thing: Any, depth: int = DEPTH) -> Callable[..., Any] | None:
    """The one function that an object calls when it is called or run: the one in an attribute of `WAYS`, else the only
    one that its `__call__` closes over; None if there is none such."""
    if not is_object(thing) or not depth:
        return None
    for name in WAYS:
        value = _value(thing, name)
        if value is None or isinstance(value, type) or not callable(value):
            continue
        if is_object(value):
            value = function_in(value, depth - 1) or value
        elif is_installed(str(getattr(value, "__module__", ""))):
            value = enclosed(value) or value
        found: Callable[..., Any] = value
        return found
    call = getattr(type(thing), "__call__", None)  # noqa: B004 - the class's own, as Python calls it
    held = [each for each in _closed_over(call) if not is_installed(each.__module__)]
    return held[0] if len(held) == 1 else None


def own_name(thing: Any) -> str:
    """The name that an object has for itself as a tool; empty if it has none."""
    own = (_value(thing, attribute) for attribute in ("name", "__name__"))
    return next((name for name in own if isinstance(name, str) and _NAME.fullmatch(name)), "")


def ways_in(thing: Any) -> list[str]:
    """The attributes of an object whose function its framework may call in place of `__call__`; empty if `__call__` is
    the user's own and there is no other way in."""
    kind = thing if isinstance(thing, type) else type(thing)
    own = [
        name
        for name, value in ({} if kind is thing else getattr(thing, "__dict__", {})).items()
        if isinstance(value, FunctionType | MethodType) and not is_installed(value.__module__)
    ]
    methods = [
        name
        for name in dir(kind)
        if name.lstrip("_").removeprefix("a") in ENTRIES and inspect.isroutine(inspect.getattr_static(kind, name))
    ]
    call = getattr(kind, "__call__", None)  # noqa: B004 - the class's own, as Python calls it
    foreign = type(call) is FunctionType and is_installed(call.__module__) and _top(call) not in sys.stdlib_module_names
    return [*own, *methods] or ["__call__"] * foreign


def _value(thing: Any, name: str) -> Any:
    """The attribute's value; None if it is one that `__getattr__` makes up, or cannot be read."""
    try:
        inspect.getattr_static(thing, name)
        return getattr(thing, name)
    except Exception:  # noqa: BLE001 - a property of the object's own
        return None


def _closed_over(function: Any) -> Iterator[FunctionType]:
    for cell in getattr(function, "__closure__", None) or ():
        try:
            value = cell.cell_contents
        except ValueError:  # an empty cell
            continue
        if isinstance(value, FunctionType):
            yield value


def _top(function: Any) -> str:
    return str(getattr(function, "__module__", "") or "").partition(".")[0]
