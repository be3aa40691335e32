"""Puts fakes in the place of objects wherever a program can reach them, and takes them out again.

It serves for what has no code to swap: classes, functions written in C or kept behind a cache, and the clocks that a
program holds. The walk begins at the program (a function, an object, a graph of them). It follows closures, defaults,
the globals that a function names, attributes, containers, partials and bound methods. Of a library's own code it
follows only the data, since no library names a user's function. Objects that cannot be reached from there are left
alone.
"""

import sys
import sysconfig
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import cache, lru_cache, partial
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MemberDescriptorType, MethodType, ModuleType
from typing import Any

# The most objects that the walk visits, nearest first. An agent that holds a data set in memory is not read to its end.
OBJECTS_MAX = 200_000

Put = Callable[[Any, Any, Any], None]
Place = tuple[Any, Put | None, Any, Any]
"""(holder, setter, key, value held there). A setter of None: the value can only be walked through."""
Follows = Callable[[str | None], bool]
Reader = Callable[[Any, Follows], list[Place]]
_ATOMS = (str, bytes, int, float, complex, bool, type(None), BuiltinFunctionType, CodeType, type(...))
_PLAIN = frozenset(map(id, (str, bytes, int, float, complex, bool, type(None))))
"""Ids of the kinds of most values, which hold nothing and have no fakes. A kind itself need not have a hash."""
_REMADE = frozenset(map(id, (tuple, staticmethod)))
"""Ids of kinds that hold others and cannot be changed, so that another one takes their place."""
_CACHED = type(cache(len))


class References:
    """A context that swaps real objects for `stand_ins` in every place that `roots` can reach.

    A fake must be made for this use alone. The program may change the holders meanwhile. Each holder is therefore
    read anew at the end: fakes are taken out wherever they are in it, all else stays. A fake that the program
    moved to another holder is not found and stays there.

    `count`: the number of places swapped for each real object, in the order of `stand_ins`.
    """

    def __init__(self, roots: Sequence[Any], stand_ins: Sequence[tuple[Any, Any]]) -> None:
        self._roots, self._pairs = roots, list(stand_ins)
        self._by_id = {id(real): number for number, (real, _) in enumerate(self._pairs)}
        modules = {root.__module__ for root in roots if isinstance(root, FunctionType | MethodType)}
        self._own = {_get_top_package(module) for module in modules if _get_top_package(module) != _LAB}
        self._programs = modules
        self._readers: dict[int, tuple[type, Reader]] = {}
        """By the kind's id, with the kind, so that no other gets this id."""
        self._before: dict[int, tuple[Any, Any]] = {}
        """Object id → (object put in, object it replaced). Holding the object keeps its id from being used again."""
        self._undo = ExitStack()  # goes on if one of its callbacks raises
        self.count = [0] * len(self._pairs)

    def __enter__(self) -> "References":
        try:
            self._walk_and_replace()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._undo.close()

    def _replace_value(self, value: Any) -> Any:
        """The fake for this value, or the value itself."""
        number = self._by_id.get(id(value))
        if number is not None:
            self.count[number] += 1
            return self._pairs[number][1]
        if type(value) is tuple and value:
            parts = tuple(self._replace_value(item) for item in value)
            return parts if any(new is not old for new, old in zip(parts, value, strict=True)) else value
        if type(value) is staticmethod:
            inside = self._replace_value(value.__func__)
            return value if inside is value.__func__ else staticmethod(inside)
        return value

    def _should_follow(self, module: str | None) -> bool:
        """Tells if the walk follows a module's code. The program's own package counts as the user's wherever it is
        installed. Of the lab, only a program's own module does, since others hold the real things beside fakes."""
        return _get_top_package(module) in self._own or module in self._programs or not is_library_module(module or "")

    def _walk_and_replace(self) -> None:
        # Neither itself nor the fakes, which hold the real things.
        visited = {id(self), *(id(stand_in) for _, stand_in in self._pairs)}
        changed: set[int] = set()
        alive: list[Any] = []  # the id of an object that died could be used again
        # Breadth first, so that what is near is seen before the bound.
        queue = deque(self._roots)
        while queue and len(visited) < OBJECTS_MAX:
            thing = queue.popleft()
            if id(thing) in visited or (read := self._get_place_lister(type(thing))) is _list_no_places:
                continue
            visited.add(id(thing))
            alive.append(thing)
            for holder, put, key, value in read(thing, self._should_follow):
                if (kind := id(type(value))) in _PLAIN:
                    continue
                if id(value) not in visited:
                    queue.append(value)
                # A tuple is looked at even if it is none of those sought: one may be in it.
                if put is None or not (kind in _REMADE or id(value) in self._by_id):
                    continue
                if (new := self._replace_value(value)) is value:
                    continue
                self._before[id(new)] = new, value
                if id(holder) not in changed:
                    changed.add(id(holder))
                    self._undo.callback(self._restore_places, holder)
                put(holder, key, new)

    def _restore_places(self, thing: Any) -> None:
        for holder, put, key, value in self._get_place_lister(type(thing))(thing, self._should_follow):
            if put is not None and id(value) in self._before:
                put(holder, key, self._before[id(value)][1])

    def _get_place_lister(self, kind: type) -> Reader:
        reader = self._readers.get(id(kind))
        if reader is None:
            reader = self._readers[id(kind)] = kind, _choose_place_lister(kind)
        return reader[1]


def _choose_place_lister(kind: type) -> Reader:
    """Gives the places in which an object of this kind holds others. Uses the object's type, since a proxy lies about
    its class, and the methods of Python's own containers, since a subclass may override its own."""
    if issubclass(kind, _ATOMS) or kind is ModuleType:
        return _list_no_places
    # In order: a subclass of dict is read as one.
    for above, read in _READERS:
        if issubclass(kind, above):
            return read
    return _EXACTLY.get(id(kind)) or partial(_list_instance_places, _list_slots(kind), kind is _CACHED)


def _list_no_places(_: Any, __: Follows) -> list[Place]:
    return []


def _list_dict_places(thing: Any, _: Follows) -> list[Place]:
    put = dict.__setitem__
    return [(thing, put, key, value) for key, value in list(dict.items(thing)) if id(type(value)) not in _PLAIN]


def _list_ordered_places(plain: Any, thing: Any, _: Follows) -> list[Place]:
    values = list(plain.__iter__(thing))
    return [(thing, plain.__setitem__, at, value) for at, value in enumerate(values) if id(type(value)) not in _PLAIN]


# Python's own iterator: a subclass may have its own.
def _list_fixed_places(plain: Any, thing: Any, _: Follows) -> list[Place]:
    return [(None, None, None, value) for value in plain.__iter__(thing) if id(type(value)) not in _PLAIN]


def _list_cell_places(cell: CellType, _: Follows) -> list[Place]:
    try:
        return [(cell, setattr, "cell_contents", cell.cell_contents)]
    except ValueError:  # it is empty
        return []


def _list_partial_places(call: partial[Any], _: Follows) -> list[Place]:
    return [
        (call, _set_partial_part, "func", call.func),
        (call, _set_partial_part, "args", call.args),
        _make_fixed_place(call.keywords),
    ]


def _list_class_places(cls: type, follows: Follows) -> list[Place]:
    # Of a library's class only instances hold something of the user's.
    if not follows(cls.__module__):
        return []
    attributes: list[Place] = [(cls, type.__setattr__, name, value) for name, value in list(vars(cls).items())]
    return attributes + [_make_fixed_place(above) for above in cls.__mro__[1:]]


def _list_function_places(function: FunctionType, follows: Follows) -> list[Place]:
    places = [
        *map(_make_fixed_place, function.__closure__ or ()),
        (function, setattr, "__defaults__", function.__defaults__),
        _make_fixed_place(function.__kwdefaults__),
        *_list_attribute_places(function.__dict__),
    ]
    # A library's function names no function of the user's.
    if follows(function.__module__):
        places += _list_global_places(function.__globals__, _list_code_names(function.__code__), follows)
    return places


def _list_attribute_places(attributes: dict[str, Any]) -> Iterator[Place]:
    """The attributes of a wrapper. `__wrapped__` is only walked through: the wrapper calls another reference."""
    for name, value in list(attributes.items()):
        yield _make_fixed_place(value) if name == "__wrapped__" else (attributes, dict.__setitem__, name, value)


def _list_global_places(names: dict[str, Any], names_wanted: frozenset[str], follows: Follows) -> Iterator[Place]:
    """The globals of these names, also in the modules among them and in modules that are imported when the code
    runs."""
    modules: set[int] = set()
    todo = [names]
    # A module imported within the function is reached by its name only.
    imported = [loaded for name in names_wanted if isinstance(loaded := sys.modules.get(name), ModuleType)]
    todo += [vars(module) for module in imported if follows(module.__name__)]
    while todo:
        namespace = todo.pop()
        for name in names_wanted & namespace.keys():
            value = namespace[name]
            if not isinstance(value, ModuleType):
                yield namespace, dict.__setitem__, name, value
            elif id(value) not in modules and follows(value.__name__):
                modules.add(id(value))
                todo.append(vars(value))


@lru_cache(10_000)
def _list_code_names(code: CodeType) -> frozenset[str]:
    """Every name that the code mentions: globals, attributes and imports, also of the functions in it."""
    inner = [_list_code_names(constant) for constant in code.co_consts if isinstance(constant, CodeType)]
    # The last part of a dotted import is the name that the code goes on with.
    return frozenset(code.co_names).union((name.rpartition(".")[2] for name in code.co_names), *inner)


def _list_slots(kind: type) -> list[MemberDescriptorType]:
    """The places of an object's values that it has in place of a dictionary, or beside it."""
    classes = [above.__dict__ for above in kind.__mro__ if "__slots__" in above.__dict__]
    return [slot for members in classes for slot in members.values() if type(slot) is MemberDescriptorType]


def _list_instance_places(slots: list[MemberDescriptorType], cached: bool, thing: Any, _: Follows) -> list[Place]:
    kind = type(thing)
    try:
        attributes = thing.__dict__
    except Exception:  # noqa: BLE001 - no __dict__, or an unbound proxy
        attributes = None
    places: list[Place] = []
    if cached:
        # `functools.cache` keeps its function in its attributes.
        places += _list_attribute_places(attributes)
    elif type(attributes) is dict:
        places.append(_make_fixed_place(attributes))
    for slot in slots:
        try:
            value = slot.__get__(thing, kind)
        except AttributeError:  # never set
            continue
        if id(type(value)) not in _PLAIN:
            places.append((thing, _set_slot, slot, value))
    places.append(_make_fixed_place(kind))
    return places


def _make_fixed_place(value: Any) -> Place:
    return None, None, None, value


def _set_slot(thing: Any, slot: MemberDescriptorType, value: Any) -> None:
    slot.__set__(thing, value)


def _set_partial_part(thing: partial[Any], name: str, value: Any) -> None:
    parts = {"func": thing.func, "args": thing.args} | {name: value}
    # A partial's attributes are read-only.
    partial.__setstate__(thing, (*parts.values(), thing.keywords, thing.__dict__))  # type: ignore[attr-defined]


_READERS: tuple[tuple[type, Reader], ...] = (
    (dict, _list_dict_places),
    *((plain, partial(_list_ordered_places, plain)) for plain in (list, deque)),
    *((plain, partial(_list_fixed_places, plain)) for plain in (tuple, set, frozenset)),
    (partial, _list_partial_places),
    (type, _list_class_places),
)
_EXACTLY: dict[int, Reader] = {
    id(CellType): _list_cell_places,
    id(FunctionType): _list_function_places,
    id(MethodType): lambda bound, _: [_make_fixed_place(bound.__self__), _make_fixed_place(bound.__func__)],
    id(staticmethod): lambda member, _: [_make_fixed_place(member.__func__)],
    id(classmethod): lambda member, _: [_make_fixed_place(member.__func__)],
    id(property): lambda member, _: [_make_fixed_place(member.fget)],
}


def _get_top_package(module: str | None) -> str:
    return (module or "").partition(".")[0]


_LAB = "chaoslab"
_STANDARD = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib")})


@cache
def is_library_module(module: str) -> bool:
    """Tells if a module belongs to Python, to an installed package or to the lab, whose code names no function of the
    user's."""
    if _get_top_package(module) in sys.stdlib_module_names or _get_top_package(module) == _LAB:
        return True
    # Some modules have no file, as those that were made by hand.
    file: str = getattr(sys.modules.get(module), "__file__", None) or ""
    return "site-packages" in file or "dist-packages" in file or file.startswith(_STANDARD)
