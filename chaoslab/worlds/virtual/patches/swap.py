"""Replaces an object wherever a module refers to it: `from time import monotonic` binds a second name.

It searches the globals of modules and their classes, the defaults and closures of the functions there, partial calls,
and factories of `defaultdict`. References in the attributes of other objects are not found, since only a search of the
whole heap would find them.
"""

import functools
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import compress
from operator import is_not, itemgetter, ne
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

from chaoslab.seams.functions.references import is_installed

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
        self._searched = _searched.setdefault(frozenset(pairs), _Known())
        self._back = {id(stand_in): (stand_in, real) for real, stand_in in pairs.values()}

    @classmethod
    def joined(cls, swaps: "Iterable[Swap]") -> "Swap":
        return cls({key: pair for swap in swaps for key, pair in swap._there.items()})

    def pairs(self) -> Iterable[tuple[Any, Any]]:
        return self._there.values()

    def do(self) -> None:
        _replace_all(self._there, self._searched, learn=True)

    def undo(self) -> None:
        """Restores the real objects, also in modules that were imported meanwhile and know only the stand-in."""
        _replace_all(self._back, self._searched, learn=False)
        _kinds.clear()  # or the classes of a program's own would be kept for ever


class _Searched(NamedTuple):
    """An installed module as it was when it was searched: the identity and the number of its names, whether names of
    its own stand for the real objects, and its classes, functions and other values that hold some of them."""

    identity: int
    size: int
    direct: bool
    holders: tuple[Any, ...]


class Quiet:
    """The modules of the process in which a search found nothing, so that the next one passes over them at once: some
    thousand of them are compared in C. They are kept, so that no later module has the address of one that is gone."""

    def __init__(self) -> None:
        self._modules: dict[str, Any] = {}
        self._mappings: list[Mapping[str, Any]] = []
        self._sizes: list[int] = []
        self._owners: list[str] = []
        """The names of the modules that the mappings belong to."""
        self.changes = 0
        """So many times some were added or left out."""
        self._last: tuple[int, list[Any], list[str]] = (-1, [], [])
        """`changes` at the last answer of `others`, all modules then, and the names of the answer."""

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def others(self) -> list[tuple[str, Any]]:
        """All other modules by name. One that is gone, is another, or has a mapping that got longer or shorter, is no
        longer quiet."""
        sizes, modules = list(map(len, self._mappings)), dict(sys.modules)
        # Lengths in C first, as nearly always nothing has changed.
        changed = set(compress(self._owners, map(ne, sizes, self._sizes))) if sizes != self._sizes else set[str]()
        changes, then, names = self._last
        now = list(modules.values())
        # Compared by identity and not by equality, which a module might define.
        if changed or changes != self.changes or len(now) != len(then) or any(map(is_not, now, then)):
            changed |= self._modules.keys() - modules.keys()
            changed.update(
                compress(self._modules, map(is_not, map(modules.get, self._modules), self._modules.values()))
            )
            if changed:
                self._leave(changed)
            names = list(compress(modules, map(is_not, now, map(self._modules.get, modules))))
            self._last = self.changes, now, names
        return [(name, modules[name]) for name in names]

    def _leave(self, names: set[str]) -> None:
        stays = [owner not in names for owner in self._owners]
        self._owners = list(compress(self._owners, stays))
        self._mappings, self._sizes = list(compress(self._mappings, stays)), list(compress(self._sizes, stays))
        for name in names:
            del self._modules[name]
        self.changes += 1

    def note(self, modules: Sequence[tuple[str, Any]], quiet: Mapping[str, Iterable[Mapping[str, Any]]]) -> None:
        """Notes the outcome of a search of these others. `quiet`: name → the mappings in which nothing was found."""
        for name, module in modules:
            if name in quiet:
                self._modules[name] = module
                for mapping in quiet[name]:
                    self._owners.append(name)
                    self._mappings.append(mapping)
                    self._sizes.append(len(mapping))
        self.changes += bool(quiet)


class _Known(dict[str, _Searched]):
    """The outcomes of a search, by module."""

    def __init__(self) -> None:
        self.quiet = Quiet()


_searched: dict[frozenset[int], _Known] = {}
"""By the ids of the real objects. While its names stay, only those places of a module are searched again that held
something, since a package binds its names when it is imported."""


class _Unbound(staticmethod):  # type: ignore[type-arg]
    """A function in place of a builtin: as an attribute of a class it must not become a method."""


def fit_stand_in(real: Any, stand_in: Any) -> Any:
    """The stand-in in a form that may be an attribute of a class."""
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


def classes_in(values: Iterable[Any]) -> list[type]:
    """The classes among these values."""
    return [value for value in _list_relevant(list(values)) if _kinds[type(value)] == _CLASS]


def _list_relevant(values: Sequence[Any]) -> list[Any]:
    """Those of these values in which something is looked for; they are told apart in C."""
    try:
        return list(compress(values, map(_kinds.__getitem__, map(type, values))))
    except TypeError:  # a kind has no hash, by its own metaclass: nothing is looked for in its values
        plain: Any = type.__hash__
        return _list_relevant([value for value in values if type(type(value)).__hash__ is plain])


def _replace_all(pairs: Pairs, searched: _Known, *, learn: bool) -> None:
    """Looks at every value of every module, a quarter of a million in the lab, but for the modules that are `searched`.
    All but functions, classes and kinds of which one is replaced are passed over in C. `learn`: the installed modules
    are noted."""
    if not pairs:
        return
    for real, _ in pairs.values():
        if not _kinds[type(real)]:
            _kinds[type(real)] = _ITSELF
    looked_in, quiet = set[int](), dict[str, Sequence[Mapping[str, Any]]]()
    modules = searched.quiet.others()
    for name, module in modules:
        # The lab's own modules keep the real things.
        if not isinstance(module, ModuleType) or name.startswith(_OWN):
            quiet[name] = ()
            continue
        names = vars(module)
        record = searched.get(name)
        if record is not None and record.identity == id(names) and record.size == len(names):
            if not (record.direct or record.holders):
                quiet[name] = (names,)
            if record.direct:
                # Its names were bound at its import and stay, so only these places are looked at.
                _replace_in_names(names, pairs)
            for holder in record.holders:
                _replace_in_holder(name, holder, pairs, looked_in)
            continue
        direct, holders = _replace_in_module(name, names, pairs, looked_in)
        # A program's own module changes, and so does one that is being loaded.
        if learn and is_installed(name) and not is_loading(module):
            searched[name] = _Searched(id(names), len(names), direct, tuple(holders))
            if not (direct or holders):
                quiet[name] = (names,)
    if learn:
        searched.quiet.note(modules, quiet)


def is_loading(module: ModuleType) -> bool:
    return bool(getattr(getattr(module, "__spec__", None), "_initializing", False))


def _replace_in_module(name: str, names: dict[str, Any], pairs: Pairs, looked_in: set[int]) -> tuple[bool, list[Any]]:
    """True if a name of its own was replaced, and the values in which something was."""
    direct = False
    holders: list[Any] = []
    for value in _list_relevant(list(names.values())):
        if id(value) in pairs:
            direct = True
        elif _replace_in_holder(name, value, pairs, looked_in):
            holders.append(value)
    if direct:
        _replace_in_names(names, pairs)
    return direct, holders


def _replace_in_names(names: dict[str, Any], pairs: Pairs) -> None:
    items = list(names.items())
    for key, value in compress(items, map(pairs.__contains__, map(id, map(itemgetter(1), items)))):
        names[key] = pairs[id(value)][1]


def _replace_in_holder(name: str, value: Any, pairs: Pairs, looked_in: set[int]) -> bool:
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
    for member in _list_relevant(list(vars(cls).values())):
        kind = type(member)
        if id(member) in pairs:
            real, new = pairs[id(member)]
            _set(cls, member, fit_stand_in(real, new))
            changed = True
        elif kind is FunctionType:
            if member.__closure__ or member.__defaults__ or member.__kwdefaults__:
                changed |= _replace_in_defaults(member, pairs)
        elif kind is staticmethod or kind is classmethod or kind is _Unbound:
            inner = member.__func__
            if id(inner) in pairs:
                new = pairs[id(inner)][1]
                _set(cls, member, new if kind is _Unbound else kind(new))
                changed = True
            elif type(inner) is FunctionType:
                changed |= _replace_in_defaults(inner, pairs)
        else:
            changed |= _replace_in_value(member, pairs)
    return changed


def _set(cls: type, member: Any, new: Any) -> None:
    """Replaces a member of a class, under each of its names."""
    for key in [key for key, value in vars(cls).items() if value is member]:
        setattr(cls, key, new)


def _replace_in_defaults(function: FunctionType, pairs: Pairs) -> bool:
    """True if something was replaced."""
    cells, changed = function.__closure__, False
    if cells and not str(function.__globals__.get("__name__", "")).startswith(_OWN):  # a stand-in keeps the real thing
        for cell in cells:
            try:
                pair = pairs.get(id(cell.cell_contents))
            except ValueError:  # it is empty
                continue
            if pair is not None:
                cell.cell_contents = pair[1]
                changed = True
    defaults, named = function.__defaults__, function.__kwdefaults__
    if defaults and _has_any(defaults, pairs):
        function.__defaults__ = tuple(pairs[id(v)][1] if id(v) in pairs else v for v in defaults)
        changed = True
    if named and _has_any(named.values(), pairs):
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
    if not _has_any((call.func, *call.args, *call.keywords.values()), pairs):
        return False
    func, *args = (pairs[id(v)][1] if id(v) in pairs else v for v in (call.func, *call.args))
    keywords = {key: pairs[id(v)][1] if id(v) in pairs else v for key, v in call.keywords.items()}
    # The attributes of a partial are read-only, so its state is the only way to change it in place.
    call.__setstate__((func, tuple(args), keywords, vars(call)))  # type: ignore[attr-defined]
    return True


def _has_any(values: Iterable[Any], pairs: Pairs) -> bool:
    """True if one of the values is to be replaced. Fast, since it is called for every function of the process."""
    return not pairs.keys().isdisjoint(map(id, values))
