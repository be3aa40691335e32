"""Plug-ins by file name: `faults/tool/lost_reply.py` *is* the fault "lost_reply", its class is `LostReply`. Small ones
share a file that the group names in `FAMILIES`: there each public class is one. A plug-in of another package registers
its class under an entry-point group, for faults `chaoslab.faults`."""

from __future__ import annotations

import importlib
import os
import pkgutil
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from chaoslab.base.boundary import let_through
from chaoslab.base.jsonable import describe_error, line, shown

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint, EntryPoints

SAID = 400
"""The most characters of the line that says what is wrong with a plug-in."""


class BrokenPlugin(LookupError):
    """A plug-in is there but cannot be used. The message is one line that names its package."""


LISTED, SOME = 120, 10
"""The most names that a hint lists, and the number that it lists of more."""


def did_you_mean(wrong: str, known: Iterable[str], *, other: Iterable[str] = ()) -> str:
    """The hint behind an unknown name: the nearest known one, or all of them; of more than `LISTED`, the last ones,
    which are the newest where names are moments. `other`: further names of the same things, which may be the nearest
    and are not listed."""
    import difflib

    names = sorted(known)
    near = difflib.get_close_matches(wrong, [*names, *sorted(other)], n=1)
    if near:
        return f"did you mean '{near[0]}'?"
    if not names:
        return "there is none"
    left = len(names) - SOME if len(names) > LISTED else 0
    return f"known are {', '.join(names[left:])}{f' and {left} more' if left else ''}"


def names(group: str) -> tuple[str, ...]:
    """All plug-ins of a group ("faults"), bundled and installed, sorted. Those installed since the last call are among
    them."""
    return tuple(sorted({*bundled(group), *installed(group)}))


def family(group: str, name: str) -> tuple[str, ...]:
    """The bundled plug-ins of one family ("faults", "network"), sorted."""
    return tuple(sorted(plugin for plugin, module in bundled(group).items() if module.split(".")[-2] == name))


def installed(group: str) -> tuple[str, ...]:
    """The plug-ins of other packages, sorted. Their family is not known before they are loaded."""
    return tuple(sorted({point.name for point in _points(group)}))


def _points(group: str) -> Sequence[EntryPoint]:
    """The entry points of the group in all packages, each name once; a line on the log for each that is left out."""
    packages = tuple((place, _changed(place)) for place in sys.path)
    if _read.packages != packages:
        _read.packages, _read.all, _read.by_group = packages, _all_points(packages), {}
    if group not in _read.by_group:
        found: dict[str, EntryPoint] = {}
        own = bundled(group)
        assert _read.all is not None
        for point in _read.all.select(group=f"chaoslab.{group}"):
            if point.name in own or point.name in found:
                other = "chaoslab" if point.name in own else _origin(found[point.name])
                _say(f"the {_kind(group)} '{point.name}' of {_origin(point)} is not used: {other} has one of this name")
            else:
                found[point.name] = point
        _read.by_group[group] = tuple(found.values())
    return _read.by_group[group]


def _all_points(packages: Iterable[tuple[str, int]]) -> EntryPoints:
    """Those of all packages. Their files take some milliseconds to read, so this is done again only in folders where
    something has come or gone. Of a package in two folders the first counts."""
    from importlib.metadata import EntryPoints

    before, _read.by_folder = _read.by_folder, {}
    first: dict[str, Iterable[EntryPoint]] = {}
    for folder in packages:
        found = before.get(folder)
        _read.by_folder[folder] = found = [*_in_folder(folder[0])] if found is None else found
        for name, points in found:
            first.setdefault(name, points)
    return EntryPoints(point for points in first.values() for point in points)


def _in_folder(place: str) -> Iterator[tuple[str, Iterable[EntryPoint]]]:
    from importlib.metadata import distributions  # 35 ms, which few commands need

    for package in distributions(path=[place]):
        try:
            # its name would be read from another file
            yield package._normalized_name, package.entry_points  # type: ignore[attr-defined]
        except Exception as error:  # noqa: BLE001 - importlib.metadata raises anything at a file that is none
            _say(
                f"the plug-ins of the package {package.name} are not used: its entry_points.txt is malformed ({error})"
            )


@cache
def _say(text: str) -> None:
    """Says something once, in one line on stderr."""
    import logging

    logging.getLogger("chaoslab").warning("%s", line(text, SAID))


def _origin(point: EntryPoint) -> str:
    return f"the package {point.dist.name} {point.dist.version}" if point.dist is not None else point.value


class _Read:
    """The entry points of all packages as they were last read, and those of the groups that were asked for.
    `packages`: the folders of packages then, with the times of their last change."""

    def __init__(self) -> None:
        self.packages: tuple[tuple[str, int], ...] | None = None
        self.all: EntryPoints | None = None
        self.by_folder: dict[tuple[str, int], Sequence[tuple[str, Iterable[EntryPoint]]]] = {}
        self.by_group: dict[str, Sequence[EntryPoint]] = {}


_read = _Read()


def _changed(folder: str) -> int:
    try:
        return os.stat(folder or ".").st_mtime_ns
    except OSError:
        return 0


def add(group: str, name: str, found: type) -> None:
    """Makes a class that no package registers a plug-in of this process, as a user's program does. Raises ValueError:
    another plug-in has the name."""
    known = _added.get((group, name))
    again = known is not None and (known.__module__, known.__qualname__) == (found.__module__, found.__qualname__)
    if name in names(group) or (known is not None and not again):
        raise ValueError(f"there is a {_kind(group)} '{name}' already: give the class {found.__name__} another name")
    _added[group, name] = found  # a class that a notebook's cell has made anew takes the place of the old one
    load.cache_clear()


_added: dict[tuple[str, str], type] = {}
"""The classes that `add` was given, by group and name."""


@cache
def load(group: str, name: str) -> Any:
    """The plug-in's class. Only a plug-in that is found is cached. Raises LookupError: no such plug-in; the message
    names the nearest one. BrokenPlugin: it cannot be imported."""
    importlib.invalidate_caches()  # it may have been installed a moment ago, in a notebook
    for point in (point for point in _points(group) if point.name == name):
        try:
            return point.load()
        except BaseException as error:
            let_through(error)
            raise broken(group, name, describe_error(error)) from error
    if (group, name) in _added:
        return _added[group, name]
    place = bundled(group).get(name)
    if place is None:
        raise LookupError(f"no {_kind(group)} is called {shown(name)}: {did_you_mean(name, names(group))}")
    return getattr(importlib.import_module(place), "".join(part.capitalize() for part in name.split("_")))


def broken(group: str, name: str, why: str) -> BrokenPlugin:
    """The error for a plug-in that cannot be used."""
    found = next((point for point in _points(group) if point.name == name), None)
    origin = _origin(found) if found is not None else "chaoslab" if name in bundled(group) else ""
    of = f" of {origin}" if origin else ""  # else the user's own, given as an object
    return BrokenPlugin(line(f"the {_kind(group)} '{name}'{of} cannot be used: {why}", SAID))


def _kind(group: str) -> str:
    """One plug-in of the group, in a word."""
    return group.rpartition(".")[2].removesuffix("s")


@cache
def bundled(group: str) -> dict[str, str]:
    """The lab's own plug-ins, by name: the module of each, in the group's package or in a family's."""
    package = importlib.import_module(f"chaoslab.{group}")
    found: dict[str, str] = {}
    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        inside = importlib.import_module(module.name).__path__ if module.ispkg else None
        for each in [module] if inside is None else pkgutil.iter_modules(inside, f"{module.name}."):
            name = each.name.rpartition(".")[2]
            shared = name in getattr(package, "FAMILIES", ())
            found |= dict.fromkeys(_own_classes(each.name) if shared else (name,), each.name)
    return found


def _own_classes(module: str) -> Iterable[str]:
    """The public classes that a module defines, as the names of plug-ins."""
    named = vars(importlib.import_module(module)).items()
    own = [name for name, each in named if isinstance(each, type) and each.__module__ == module]
    return [snake(name) for name in own if not name.startswith("_")]


def snake(name: str) -> str:
    """The plug-in's name of a class: "LostReply" is "lost_reply"."""
    return re.sub("(?<=.)([A-Z])", r"_\1", name).lower()
