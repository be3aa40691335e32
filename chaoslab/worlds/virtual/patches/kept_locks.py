"""Finds the real locks and simple queues that modules and their classes hold, in every module of the process.

That is a quarter of a million names in the lab, and half a million members of classes. So an installed module is
searched once. After that only those of its places are looked at that held a lock or `None`, from which a lock may be
made later, until it or one of its classes has more or fewer names.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from operator import call
from types import ModuleType, NoneType
from typing import Any

from chaoslab.seams.functions.references import is_installed
from chaoslab.worlds.virtual.machine._locks import Lock, RealLock, RealQueue, SimpleQueue
from chaoslab.worlds.virtual.machine.machine import Machine
from chaoslab.worlds.virtual.patches import Patch
from chaoslab.worlds.virtual.patches.swap import Quiet, classes_in, is_loading

_TAKEN_OVER: dict[type, Callable[[Any], Any]] = {RealLock: Lock.over, RealQueue: SimpleQueue.over}
_HOLDS = frozenset(map(id, (Lock, SimpleQueue, *_TAKEN_OVER)))
_MAY_HOLD = _HOLDS | {id(NoneType)}
"""Ids of kinds, since a value of a program may have a kind without a hash."""


@dataclass(frozen=True, slots=True)
class _Searched:
    """A module as it was when it was searched."""

    names: Mapping[str, Any]
    count: int
    members: Sequence[Mapping[str, Any]]
    members_count: int
    places: Sequence[tuple[Any, str]]

    @classmethod
    def build(cls, name: str, module: ModuleType) -> "_Searched":
        names = vars(module)
        # By their own module, so that a class which several import is searched once.
        classes = [class_ for class_ in classes_in(names.values()) if class_.__module__ == name]
        members = [vars(class_) for class_ in classes]
        places: list[tuple[Any, str]] = []
        for holder in (module, *classes):
            attributes = vars(holder)
            # Asked at once and in C, since nearly all holders have none.
            if not _MAY_HOLD.isdisjoint(map(id, map(type, attributes.values()))):
                places += [
                    (holder, key)
                    for key, value in list(attributes.items())
                    if id(type(value)) in _MAY_HOLD and not (value is None and key.startswith("__"))
                ]
        return cls(names, len(names), members, sum(map(len, members)), places)

    def still_is(self, module: ModuleType) -> bool:
        # The module may have been taken out and imported anew.
        return (
            self.names is vars(module)
            and self.count == len(self.names)
            and (not self.members or self.members_count == sum(map(len, self.members)))
        )


def patches() -> Iterable[Patch]:
    """Patches that wrap them. One object gets one wrapper."""
    wrappers: dict[int, Any] = {}
    for holder, key, value in _find_locks():
        if wrap := _TAKEN_OVER.get(type(value)):
            # Two names of one lock must stay one lock.
            yield Patch(holder, key, wrappers.setdefault(id(value), wrap(value)))


def let_go(machine: Machine) -> None:
    """Takes them from the threads of a machine that were killed, or would not end: nobody else would ever get them."""
    for _, _, value in _find_locks():
        if type(value) is Lock:
            value.let_go(machine)


def _find_locks() -> Iterator[tuple[Any, str, Any]]:
    """The places that hold one, and what they hold."""
    quiet = dict[str, Sequence[Mapping[str, Any]]]()
    modules = _quiet.others()
    yield from _known.held()
    for name, module in modules:
        # Its own locks are made for the machine.
        if not isinstance(module, ModuleType) or name.startswith("chaoslab.worlds.virtual"):
            quiet[name] = ()
            continue
        searched = _searched.get(name)
        if searched is None or not searched.still_is(module):
            searched = _Searched.build(name, module)
            # A module that is being loaded has more names soon.
            if is_installed(name) and not is_loading(module):
                _searched[name] = searched
        if _searched.get(name) is searched:
            quiet[name] = (searched.names, *searched.members)
        for holder, key in searched.places:
            if id(type(value := vars(holder).get(key))) in _HOLDS:
                yield holder, key, value
    # Noted at the end, so that an interrupted search is made again.
    _quiet.note(modules, quiet)


class _Known:
    """Places of the modules that `_quiet` leaves out, which hold a lock or a queue, or may hold one later: a search of
    them is one in C."""

    def __init__(self) -> None:
        self._changes = 0
        self._take(())

    def _take(self, places: Sequence[tuple[Any, str]]) -> None:
        self._places = places
        self._names = [key for _, key in places]
        self._read: list[Callable[[str], Any]] = [vars(holder).get for holder, _ in places]

    def held(self) -> Iterator[tuple[Any, str, Any]]:
        # Only when the set of quiet modules has changed.
        if self._changes != _quiet.changes:
            self._changes = _quiet.changes
            self._take([location for name in _quiet if name in _searched for location in _searched[name].places])
        values = list(map(call, self._read, self._names))
        matches = compress(zip(self._places, values, strict=True), map(_HOLDS.__contains__, map(id, map(type, values))))
        return ((holder, key, value) for (holder, key), value in matches)


_searched: dict[str, _Searched] = {}
_quiet = Quiet()
_known = _Known()
