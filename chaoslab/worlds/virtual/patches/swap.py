"""Puts one object in another's place wherever a module knows it: `from time import monotonic` binds a name of its own."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import FunctionType, ModuleType
from typing import Any


class Swap:
    """`pairs`: id of the real object → (the real object, what stands in for it)."""

    def __init__(self, pairs: Mapping[int, tuple[Any, Any]]) -> None:
        self._there = dict(pairs)
        self._back = {id(stand_in): (stand_in, real) for real, stand_in in pairs.values()}

    def do(self) -> None:
        _replace(self._there)

    def undo(self) -> None:
        """Also in modules that were imported meanwhile, which know only the stand-in."""
        _replace(self._back)


def _replace(pairs: Mapping[int, tuple[Any, Any]]) -> None:
    """In the globals of every module, in classes found there, and in the defaults of functions."""
    if not pairs:
        return
    for module in list(sys.modules.values()):
        if not isinstance(module, ModuleType) or module.__name__.startswith("chaoslab.worlds.virtual"):
            continue
        names = vars(module)
        for name, value in list(names.items()):
            if id(value) in pairs:
                names[name] = pairs[id(value)][1]
            elif isinstance(value, FunctionType):
                _in_defaults(value, pairs)
            elif isinstance(value, type) and getattr(value, "__module__", None) == module.__name__:
                for key, member in list(vars(value).items()):
                    if id(member) in pairs:
                        setattr(value, key, pairs[id(member)][1])
                    elif isinstance(member, FunctionType):
                        _in_defaults(member, pairs)


def _in_defaults(function: FunctionType, pairs: Mapping[int, tuple[Any, Any]]) -> None:
    defaults = function.__defaults__
    if defaults and any(id(value) in pairs for value in defaults):
        function.__defaults__ = tuple(pairs[id(v)][1] if id(v) in pairs else v for v in defaults)
    named = function.__kwdefaults__
    if named:
        for key, value in named.items():
            if id(value) in pairs:
                named[key] = pairs[id(value)][1]
