"""Replaces an object wherever a module refers to it: `from time import monotonic` binds a second name.

It searches the globals of modules and their classes, the defaults and closures of the functions there, partial calls,
and factories of `defaultdict`. References in the attributes of other objects are not found, since only a search of the
whole heap would find them.
"""

import functools
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import compress
from operator import itemgetter
from types import (
    BuiltinFunctionType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    ModuleType,
    NoneType,
    WrapperDescriptorType,
)
from typing import Any, NamedTuple

from chaoslab.seams.functions.references import is_library_module

Pairs = dict[int, tuple[Any, Any]]
_OWN = "chaoslab.worlds.virtual"
_EMPTY = frozenset({
    NoneType, str, bytes, int, float, bool, tuple, list, dict, set, frozenset, property, BuiltinFunctionType,
    GetSetDescriptorType, MemberDescriptorType, ModuleType, WrapperDescriptorType,
})  # fmt: skip
"""Kinds of values in which nothing is looked for."""


class Swap:
    """A replacement. `pairs`: id of the real object → (the real object, its fake)."""

    def __init__(self, pairs: Pairs) -> None:
        self._there = dict(pairs)
        self._searched = _searched.setdefault(frozenset(pairs), {})
        self._back = {id(stand_in): (stand_in, real) for real, stand_in in pairs.values()}

    @classmethod
    def merge_swaps(cls, swaps: "Iterable[Swap]") -> "Swap":
        return cls({key: pair for swap in swaps for key, pair in swap._there.items()})

    def list_real_fake_pairs(self) -> Iterable[tuple[Any, Any]]:
        return self._there.values()

    def replace_everywhere(self) -> None:
        _replace_in_all_modules(self._there, self._searched, learn=True)

    def restore_everywhere(self) -> None:
        """Restores the real objects, also in modules that were imported meanwhile and know only the fake."""
        _replace_in_all_modules(self._back, self._searched, learn=False)
        _kinds.clear()  # or the classes of a program's own would be kept for ever


class _Searched(NamedTuple):
    """An installed module as it was when it was searched: its names, which are kept so that no later module has their
    address, their number, whether names of its own stand for the real objects, and its classes, functions and other
    values that hold some of them."""

    names: dict[str, Any]
    size: int
    direct: bool
    holders: tuple[Any, ...]


_Known = dict[str, _Searched]
_searched: dict[frozenset[int], _Known] = {}
"""By the ids of the real objects. While its names stay, only those places of a module are searched again that held
something, since a package binds its names when it is imported."""


class _Unbound(staticmethod):  # type: ignore[type-arg]
    """A function in place of a builtin: as an attribute of a class it must not become a method."""


def wrap_as_class_attribute(real: Any, stand_in: Any) -> Any:
    """The fake in a form that may be an attribute of a class."""
    return _Unbound(stand_in) if type(stand_in) is FunctionType and not hasattr(real, "__get__") else stand_in


class _Kinds(dict[type, int]):
    """Kind of value → 0 if nothing is looked for in it, so that `itertools.compress` passes over it in C."""

    def __missing__(self, kind: type) -> int:
        if kind in _EMPTY:
            kind_number = _NOTHING
        elif kind in _HOLDERS:
            kind_number = _HOLDER
        else:
            kind_number = (
                _CLASS if issubclass(kind, type) else _NOTHING
            )  # not isinstance, which would query a proxy's target
        self[kind] = kind_number
        return kind_number


_NOTHING, _HOLDER, _CLASS, _ITSELF = range(4)
"""In a value of this kind nothing is looked for, something may be held, its attributes are looked at, or it may be one
of those to replace and holds nothing."""
_HOLDERS = frozenset({FunctionType, functools.partial, defaultdict, staticmethod, classmethod, _Unbound})
_kinds = _Kinds()


def list_classes(values: Iterable[Any]) -> list[type]:
    """The classes among these values."""
    return [value for value in _filter_searchable_values(list(values)) if _kinds[type(value)] == _CLASS]


def _filter_searchable_values(values: Sequence[Any]) -> list[Any]:
    """Those of these values in which something is looked for; they are told apart in C."""
    try:
        return list(compress(values, map(_kinds.__getitem__, map(type, values))))
    except TypeError:  # a kind has no hash, by its own metaclass: nothing is looked for in its values
        plain: Any = type.__hash__
        return _filter_searchable_values([value for value in values if type(type(value)).__hash__ is plain])


def _replace_in_all_modules(pairs: Pairs, searched: _Known, *, learn: bool) -> None:
    """Looks at every value of every module, a quarter of a million in the lab, but for the modules that are `searched`.
    All but functions, classes and kinds of which one is replaced are passed over in C. `learn`: the installed modules
    are noted."""
    if not pairs:
        return
    for real, _ in pairs.values():
        if not _kinds[type(real)]:
            _kinds[type(real)] = _ITSELF
    looked_in = set[int]()
    for name, module in list(sys.modules.items()):
        # The lab's own modules keep the real things.
        if not isinstance(module, ModuleType) or name.startswith(_OWN):
            continue
        names = vars(module)
        record = searched.get(name)
        if record is not None and record.names is names and record.size == len(names):
            if record.direct:
                # Its names were bound at its import and stay, so only these places are looked at.
                _replace_in_namespace(names, pairs)
            for holder in record.holders:
                _replace_in_module_value(name, holder, pairs, looked_in)
            continue
        direct, holders = _replace_in_module(name, names, pairs, looked_in)
        # A program's own module changes, and so does one that is being loaded.
        if learn and is_library_module(name) and not is_module_loading(module):
            searched[name] = _Searched(names, len(names), direct, tuple(holders))


def is_module_loading(module: ModuleType) -> bool:
    return bool(getattr(getattr(module, "__spec__", None), "_initializing", False))


def _replace_in_module(name: str, names: dict[str, Any], pairs: Pairs, looked_in: set[int]) -> tuple[bool, list[Any]]:
    """True if a name of its own was replaced, and the values in which something was."""
    direct = False
    holders: list[Any] = []
    for value in _filter_searchable_values(list(names.values())):
        if id(value) in pairs:
            direct = True
        elif _replace_in_module_value(name, value, pairs, looked_in):
            holders.append(value)
    if direct:
        _replace_in_namespace(names, pairs)
    return direct, holders


def _replace_in_namespace(names: dict[str, Any], pairs: Pairs) -> None:
    items = list(names.items())
    for key, value in compress(items, map(pairs.__contains__, map(id, map(itemgetter(1), items)))):
        names[key] = pairs[id(value)][1]


def _replace_in_module_value(name: str, value: Any, pairs: Pairs, looked_in: set[int]) -> bool:
    """True if something was replaced in this value of a module. A class is searched once, in its own module."""
    kind = type(value)
    if kind is FunctionType:
        # A function may keep the real thing in a default or a closure, as in `def f(now=time.time)`.
        return bool(value.__closure__ or value.__defaults__ or value.__kwdefaults__) and _replace_in_defaults(
            value, pairs
        )
    if _kinds[kind] != _CLASS:
        return _replace_in_value(value, pairs)
    if getattr(value, "__module__", None) != name or id(value) in looked_in:
        return False
    looked_in.add(id(value))
    return _replace_in_class(value, pairs)


def _replace_in_class(cls: type, pairs: Pairs) -> bool:
    """True if something was replaced."""
    changed = False
    for member in _filter_searchable_values(list(vars(cls).values())):
        kind = type(member)
        if id(member) in pairs:
            real, new = pairs[id(member)]
            _replace_class_member(cls, member, wrap_as_class_attribute(real, new))
            changed = True
        elif kind is FunctionType:
            if member.__closure__ or member.__defaults__ or member.__kwdefaults__:
                changed |= _replace_in_defaults(member, pairs)
        elif kind is staticmethod or kind is classmethod or kind is _Unbound:
            inner = member.__func__
            if id(inner) in pairs:
                new = pairs[id(inner)][1]
                _replace_class_member(cls, member, new if kind is _Unbound else kind(new))
                changed = True
            elif type(inner) is FunctionType:
                changed |= _replace_in_defaults(inner, pairs)
        else:
            changed |= _replace_in_value(member, pairs)
    return changed


def _replace_class_member(cls: type, member: Any, new: Any) -> None:
    """Replaces a member of a class, under each of its names."""
    for key in [key for key, value in vars(cls).items() if value is member]:
        setattr(cls, key, new)


def _replace_in_defaults(function: FunctionType, pairs: Pairs) -> bool:
    """True if something was replaced."""
    cells, changed = function.__closure__, False
    if cells and not str(function.__globals__.get("__name__", "")).startswith(_OWN):  # a fake keeps the real thing
        for cell in cells:
            try:
                pair = pairs.get(id(cell.cell_contents))
            except ValueError:  # it is empty
                continue
            if pair is not None:
                cell.cell_contents = pair[1]
                changed = True
    defaults, named = function.__defaults__, function.__kwdefaults__
    if defaults and _has_replaceable_value(defaults, pairs):
        function.__defaults__ = tuple(pairs[id(v)][1] if id(v) in pairs else v for v in defaults)
        changed = True
    if named and _has_replaceable_value(named.values(), pairs):
        named.update({key: pairs[id(v)][1] for key, v in named.items() if id(v) in pairs})
        changed = True
    return changed


def _replace_in_value(value: Any, pairs: Pairs) -> bool:
    """True if something was replaced."""
    kind = type(value)
    if kind is functools.partial:
        return _replace_in_partial(value, pairs)
    if kind is defaultdict and id(value.default_factory) in pairs:
        value.default_factory = pairs[id(value.default_factory)][1]
        return True
    return False


def _replace_in_partial(call: functools.partial[Any], pairs: Pairs) -> bool:
    """Changes the partial call in place, since others may hold the same object. True if it did."""
    if not _has_replaceable_value((call.func, *call.args, *call.keywords.values()), pairs):
        return False
    func, *args = (pairs[id(v)][1] if id(v) in pairs else v for v in (call.func, *call.args))
    keywords = {key: pairs[id(v)][1] if id(v) in pairs else v for key, v in call.keywords.items()}
    # The attributes of a partial are read-only, so its state is the only way to change it in place.
    call.__setstate__((func, tuple(args), keywords, vars(call)))  # type: ignore[attr-defined]
    return True


def _has_replaceable_value(values: Iterable[Any], pairs: Pairs) -> bool:
    """True if one of the values is to be replaced. Fast, since it is called for every function of the process."""
    return not pairs.keys().isdisjoint(map(id, values))
