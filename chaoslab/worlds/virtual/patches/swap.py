"""Replaces an object wherever a module refers to it: `from time import monotonic` binds a second name.

It searches the globals of modules and their classes, the defaults and closures of the functions there, partial calls,
and factories of `defaultdict`. References in the attributes of other objects are not found, since only a search of the
whole heap would find them.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections import defaultdict
from collections.abc import Iterable
from types import (
    BuiltinFunctionType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    ModuleType,
    NoneType,
    WrapperDescriptorType,
)
from typing import Any

Pairs = dict[int, tuple[Any, Any]]
_OWN = "chaoslab.worlds.virtual"
_EMPTY = frozenset({
    NoneType, str, bytes, int, float, bool, tuple, list, dict, set, frozenset, property, BuiltinFunctionType,
    GetSetDescriptorType, MemberDescriptorType, ModuleType, WrapperDescriptorType,
})  # fmt: skip
"""Kinds of values in which nothing is looked for."""


class Swap:
    """A replacement. `pairs`: id of the real object → (the real object, its stand-in)."""

    def __init__(self, pairs: Pairs) -> None:
        self._there = dict(pairs)
        self._back = {id(stand_in): (stand_in, real) for real, stand_in in pairs.values()}

    @classmethod
    def joined(cls, swaps: Iterable[Swap]) -> Swap:
        return cls({key: pair for swap in swaps for key, pair in swap._there.items()})

    def pairs(self) -> Iterable[tuple[Any, Any]]:
        return self._there.values()

    def do(self) -> None:
        _replace(self._there)

    def undo(self) -> None:
        """Restores the real objects, also in modules that were imported meanwhile and know only the stand-in."""
        _replace(self._back)


class _Unbound(staticmethod):  # type: ignore[type-arg]
    """A function in place of a builtin: as an attribute of a class it must not become a method."""


def fitting(real: Any, stand_in: Any) -> Any:
    """The stand-in in a form that may be an attribute of a class."""
    return _Unbound(stand_in) if type(stand_in) is FunctionType and not hasattr(real, "__get__") else stand_in


def _replace(pairs: Pairs) -> None:
    """Looks at every value of every module, a quarter of a million in the lab: a kind that holds nothing is passed over
    at once."""
    if not pairs:
        return
    for name, module in list(sys.modules.items()):
        if not isinstance(module, ModuleType) or name.startswith(_OWN):
            continue
        names = vars(module)
        for key, value in list(names.items()):
            kind = type(value)
            if id(value) in pairs:
                names[key] = pairs[id(value)][1]
            elif kind is FunctionType:
                if value.__defaults__ or value.__closure__ or value.__kwdefaults__:
                    _in_defaults(value, pairs)
            elif kind in _EMPTY:
                pass
            elif issubclass(kind, type):  # not isinstance, which would query a proxy's target
                if getattr(value, "__module__", None) == name:
                    _in_class(value, pairs)
            else:
                _in_value(value, pairs)


def _in_class(cls: type, pairs: Pairs) -> None:
    for key, member in list(vars(cls).items()):
        kind = type(member)
        if id(member) in pairs:
            found, new = pairs[id(member)]
            setattr(cls, key, fitting(found, new))
        elif kind is FunctionType:
            if member.__defaults__ or member.__closure__ or member.__kwdefaults__:
                _in_defaults(member, pairs)
        elif kind in _EMPTY:
            pass
        elif kind is staticmethod or kind is classmethod or kind is _Unbound:
            inner = member.__func__
            if id(inner) in pairs:
                new = pairs[id(inner)][1]
                setattr(cls, key, new if kind is _Unbound else kind(new))
            elif type(inner) is FunctionType:
                _in_defaults(inner, pairs)
        else:
            _in_value(member, pairs)


def _in_defaults(function: FunctionType, pairs: Pairs) -> None:
    cells = function.__closure__
    if cells and not str(function.__globals__.get("__name__", "")).startswith(_OWN):  # a stand-in keeps the real thing
        for cell in cells:
            with contextlib.suppress(ValueError):
                if id(cell.cell_contents) in pairs:
                    cell.cell_contents = pairs[id(cell.cell_contents)][1]
    defaults, named = function.__defaults__, function.__kwdefaults__
    if defaults and _any_in(defaults, pairs):
        function.__defaults__ = tuple(pairs[id(v)][1] if id(v) in pairs else v for v in defaults)
    if named and _any_in(named.values(), pairs):
        named.update({key: pairs[id(v)][1] for key, v in named.items() if id(v) in pairs})


def _in_value(value: Any, pairs: Pairs) -> None:
    kind = type(value)
    if kind is functools.partial:
        _in_partial(value, pairs)
    elif kind is defaultdict and id(value.default_factory) in pairs:
        value.default_factory = pairs[id(value.default_factory)][1]


def _in_partial(call: functools.partial[Any], pairs: Pairs) -> None:
    """Changes the partial call in place, since others may hold the same object."""
    if _any_in((call.func, *call.args, *call.keywords.values()), pairs):
        func, *args = (pairs[id(v)][1] if id(v) in pairs else v for v in (call.func, *call.args))
        keywords = {key: pairs[id(v)][1] if id(v) in pairs else v for key, v in call.keywords.items()}
        call.__setstate__((func, tuple(args), keywords, vars(call)))  # type: ignore[attr-defined]


def _any_in(values: Iterable[Any], pairs: Pairs) -> bool:
    """True if one of the values is to be replaced. Fast, since it is called for every function of the process."""
    return not pairs.keys().isdisjoint(map(id, values))
