"""Finds the real locks and simple queues that modules and their classes hold, in every module of the process.

That is a quarter of a million names in the lab, and half a million members of classes. So an installed module is
searched once. After that only those of its places are looked at that held a lock or `None`, from which a lock may be
made later, until it or one of its classes has more or fewer names.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType, NoneType
from typing import Any

from chaoslab.seams.functions.references import is_library_module
from chaoslab.worlds.virtual.machine._locks import Lock, RealLock, RealQueue, SimpleQueue
from chaoslab.worlds.virtual.machine.machine import Machine
from chaoslab.worlds.virtual.patches import Patch
from chaoslab.worlds.virtual.patches.swap import is_module_loading, list_classes

_TAKEN_OVER: dict[type, Callable[[Any], Any]] = {RealLock: Lock.wrap_real, RealQueue: SimpleQueue.wrap_real}
_HOLDS = frozenset(map(id, (Lock, SimpleQueue, *_TAKEN_OVER)))
_MAY_HOLD = _HOLDS | {id(NoneType)}
"""Ids of kinds, since a value of a program may have a kind without a hash."""


@dataclass(frozen=True, slots=True)
class _SearchedModule:
    """A module as it was when it was searched."""

    names: Mapping[str, Any]
    count: int
    members: Sequence[Mapping[str, Any]]
    members_count: int
    places: Sequence[tuple[Any, str]]

    @classmethod
    def search_module(cls, name: str, module: ModuleType) -> "_SearchedModule":
        names = vars(module)
        # By their own module, so that a class which several import is searched once.
        classes = [class_ for class_ in list_classes(names.values()) if class_.__module__ == name]
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

    def is_up_to_date(self, module: ModuleType) -> bool:
        # The module may have been taken out and imported anew.
        return (
            self.names is vars(module)
            and self.count == len(self.names)
            and (not self.members or self.members_count == sum(map(len, self.members)))
        )


def patches() -> Iterable[Patch]:
    """Patches that wrap them. One object gets one wrapper."""
    wrappers: dict[int, Any] = {}
    for holder, key, value in _iterate_kept_locks():
        if wrap := _TAKEN_OVER.get(type(value)):
            # Two names of one lock must stay one lock.
            yield Patch(holder, key, wrappers.setdefault(id(value), wrap(value)))


def free_kept_locks(machine: Machine) -> None:
    """Takes them from the threads of a machine that were killed, or would not end: nobody else would ever get them."""
    for _, _, value in _iterate_kept_locks():
        if type(value) is Lock:
            value.free_from_dead_threads(machine)


def _iterate_kept_locks() -> Iterator[tuple[Any, str, Any]]:
    """The places that hold one, and what they hold."""
    for name, module in list(sys.modules.items()):
        # Its own locks are made for the machine.
        if not isinstance(module, ModuleType) or name.startswith("chaoslab.worlds.virtual"):
            continue
        searched = _searched.get(name)
        if searched is None or not searched.is_up_to_date(module):
            searched = _SearchedModule.search_module(name, module)
            # A module that is being loaded has more names soon.
            if is_library_module(name) and not is_module_loading(module):
                _searched[name] = searched
        for holder, key in searched.places:
            if id(type(value := vars(holder).get(key))) in _HOLDS:
                yield holder, key, value


_searched: dict[str, _SearchedModule] = {}
