"""Puts stand-ins in the place of objects wherever some program can reach them, and takes them out again.

The walk begins at the program itself (a function, an object, a graph of them) and follows what it could follow: closures, defaults, the
globals that a function names, attributes, containers, partials, bound methods. Of a library's own code it follows only the data, since
no library names a user's function. What nobody can reach from there is left alone.
"""

from __future__ import annotations

import sys
import sysconfig
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache, partial
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

OBJECTS_MAX = 200_000
"""So many objects are looked at, nearest first: an agent that holds a data set in memory is not read to its end."""

Slot = tuple[Callable[[Any], None], Any]
"""How to set a place that holds a value, and the value that it holds."""
_ATOMS = (str, bytes, int, float, complex, bool, type(None), BuiltinFunctionType, CodeType, type(...))


class References:
    """A context in which `stand_ins` (real object → what stands in for it) are in force for all that `roots` can reach.

    `count`: how many places of each real object were swapped, in the order of `stand_ins`.
    """

    def __init__(self, roots: Sequence[Any], stand_ins: Sequence[tuple[Any, Any]]) -> None:
        self._roots, self._pairs = roots, list(stand_ins)
        self._by_id = {id(real): number for number, (real, _) in enumerate(self._pairs)}
        self._methods = [n for n, (real, _) in enumerate(self._pairs) if isinstance(real, MethodType)]
        self._undo: list[tuple[Callable[[Any], None], Any]] = []
        self.count = [0] * len(self._pairs)

    def __enter__(self) -> References:
        try:
            for number in self._methods:
                self._shadow(number)
            self._walk()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        while self._undo:
            put, value = self._undo.pop()
            put(value)

    def _shadow(self, number: int) -> None:
        """A bound method is made anew each time that it is asked for: its owner gets an attribute that is found first."""
        method, stand_in = self._pairs[number]
        owner, name = method.__self__, method.__name__
        try:
            own = owner.__dict__
        except AttributeError:  # slots: only the references that are held can be swapped
            return
        if not isinstance(own, dict) or name in own:
            return
        own[name] = stand_in
        self._undo.append((lambda _: own.pop(name, None), None))
        self.count[number] += 1

    def _stand_in(self, value: Any) -> Any:
        """What belongs in this value's place; the value itself when nothing does."""
        number = self._by_id.get(id(value))
        if number is None and type(value) is MethodType:
            number = next((n for n in self._methods if self._pairs[n][0] == value), None)
        if number is not None:
            self.count[number] += 1
            return self._pairs[number][1]
        if type(value) is tuple and value:
            parts = tuple(self._stand_in(part) for part in value)
            return parts if any(new is not old for new, old in zip(parts, value, strict=True)) else value
        if type(value) is staticmethod:
            inside = self._stand_in(value.__func__)
            return value if inside is value.__func__ else staticmethod(inside)
        return value

    def _walk(self) -> None:
        own = {_top(root.__module__) for root in self._roots if isinstance(root, FunctionType | MethodType)}

        def follows(module: str | None) -> bool:
            return _top(module) in own or not _foreign(module or "")

        ours = {id(stand_in) for _, stand_in in self._pairs}
        seen: set[int] = {id(self), id(self._undo), *ours}
        kept: list[Any] = []  # an object that died would leave its id to another
        queue = deque(self._roots)
        while queue and len(seen) < OBJECTS_MAX:
            thing = queue.popleft()
            if issubclass(type(thing), _ATOMS) or id(thing) in seen:
                continue
            seen.add(id(thing))
            kept.append(thing)
            for put, value in list(_places(thing, follows)):
                new = value if put is _fixed else self._stand_in(value)
                if new is not value:
                    put(new)
                    self._undo.append((put, value))
                queue.append(value)


def _places(thing: Any, follows: Callable[[str | None], bool]) -> Iterator[Slot]:
    """The places in which an object holds others. Asked of its type, since a proxy lies about its class."""
    kind = type(thing)
    if issubclass(kind, dict):
        yield from ((partial(thing.__setitem__, key), value) for key, value in thing.items())
    elif issubclass(kind, list | deque):
        yield from ((partial(thing.__setitem__, index), value) for index, value in enumerate(thing))
    elif issubclass(kind, tuple | set | frozenset):
        yield from ((_fixed, value) for value in thing)
    elif kind is CellType:
        with suppress(ValueError):  # an empty cell
            yield partial(setattr, thing, "cell_contents"), thing.cell_contents
    elif kind is FunctionType:
        yield from _of_function(thing, follows)
    elif kind is MethodType:
        yield from ((_fixed, thing.__self__), (_fixed, thing.__func__))
    elif issubclass(kind, partial):
        yield from _of_partial(thing)
    elif kind in (staticmethod, classmethod):
        yield _fixed, thing.__func__
    elif kind is property:
        yield _fixed, thing.fget
    elif issubclass(kind, type):
        if follows(thing.__module__):
            yield from ((partial(setattr, thing, name), value) for name, value in list(vars(thing).items()))
            yield from ((_fixed, above) for above in thing.__mro__[1:])
    elif kind is not ModuleType:
        yield from _of_instance(thing)


def _of_function(function: FunctionType, follows: Callable[[str | None], bool]) -> Iterator[Slot]:
    for cell in function.__closure__ or ():
        yield _fixed, cell
    if function.__defaults__:
        yield partial(setattr, function, "__defaults__"), function.__defaults__
    for held in (function.__kwdefaults__, function.__dict__):
        yield _fixed, held
    if follows(function.__module__):
        yield from _named(function.__globals__, frozenset(_names(function.__code__)), follows)


def _named(names: dict[str, Any], wanted: frozenset[str], follows: Callable[[str | None], bool]) -> Iterator[Slot]:
    """The globals of these names, those of the modules among them too, and of modules that are imported when the code runs."""
    modules: set[int] = set()
    todo = [names]
    imported = [found for name in wanted if isinstance(found := sys.modules.get(name), ModuleType)]
    todo += [vars(module) for module in imported if follows(module.__name__)]
    while todo:
        held = todo.pop()
        for name in wanted & held.keys():
            value = held[name]
            if not isinstance(value, ModuleType):
                yield partial(held.__setitem__, name), value
            elif id(value) not in modules and follows(value.__name__):
                modules.add(id(value))
                todo.append(vars(value))


def _names(code: CodeType) -> Iterator[str]:
    """Every name that the code mentions: globals, attributes, imports, those of the functions in it too."""
    for name in code.co_names:
        yield from (name, name.rpartition(".")[2]) if "." in name else (name,)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _of_partial(thing: partial[Any]) -> Iterator[Slot]:
    def put(parts: tuple[Any, ...]) -> None:
        function, arguments, named = parts
        thing.__setstate__((function, arguments, named, dict(vars(thing))))  # type: ignore[attr-defined]

    yield put, (thing.func, thing.args, thing.keywords)


def _of_instance(thing: Any) -> Iterator[Slot]:
    kind = type(thing)
    try:
        own = thing.__dict__
    except Exception:  # noqa: BLE001 - none, or a proxy of nothing
        own = None
    if type(own) is dict:
        yield _fixed, own
    for above in kind.__mro__:
        slots = above.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            member = above.__dict__.get(name)
            if member is None or not hasattr(member, "__set__"):
                continue
            try:
                yield partial(member.__set__, thing), member.__get__(thing, kind)
            except AttributeError:  # never set
                continue
    yield _fixed, kind


def _fixed(_: Any) -> None:
    """A place that cannot be set: what it holds is only walked through."""


def _top(module: str | None) -> str:
    return (module or "").partition(".")[0]


_STANDARD = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib")})


@cache
def _foreign(module: str) -> bool:
    """Whether a module belongs to Python or to an installed package, whose code names no function of the user's. What has the
    module of the program itself for its package is the user's, wherever it is installed."""
    if _top(module) in sys.stdlib_module_names or _top(module) == "chaoslab":
        return True
    file: str = getattr(sys.modules.get(module), "__file__", None) or ""
    return "site-packages" in file or "dist-packages" in file or file.startswith(_STANDARD)
