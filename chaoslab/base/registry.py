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

from chaoslab.base.boundary import reraise_unless_foreign
from chaoslab.base.jsonable import describe_error, repr_one_line, to_one_line

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint, EntryPoints

SAID = 400
"""The most characters of the line that says what is wrong with a plug-in."""


class BrokenPlugin(LookupError):
    """A plug-in is there but cannot be used. The message is one line that names its package."""


LISTED, SOME = 120, 10
"""The most names that a hint lists, and the number that it lists of more."""


def suggest_name(wrong: str, candidates: Iterable[str], *, other: Iterable[str] = ()) -> str:
    """The hint behind an unknown name: the nearest known one, or all of them; of more than `LISTED`, the last ones,
    which are the newest where names are moments. `other`: further names of the same things, which may be the nearest
    and are not listed."""
    import difflib

    names = sorted(candidates)
    near = difflib.get_close_matches(wrong, [*names, *sorted(other)], n=1)
    if near:
        return f"did you mean '{near[0]}'?"
    if not names:
        return "there is none"
    omitted = len(names) - SOME if len(names) > LISTED else 0
    return f"known are {', '.join(names[omitted:])}{f' and {omitted} more' if omitted else ''}"


def list_plugins(group: str) -> tuple[str, ...]:
    """All plug-ins of a group ("faults"), bundled and installed, sorted. Those installed since the last call are among
    them."""
    return tuple(sorted({*map_bundled_plugins(group), *list_installed_plugins(group)}))


def list_family_plugins(group: str, name: str) -> tuple[str, ...]:
    """The bundled plug-ins of one family ("faults", "network"), sorted."""
    return tuple(
        sorted(plugin for plugin, module in map_bundled_plugins(group).items() if module.split(".")[-2] == name)
    )


def list_installed_plugins(group: str) -> tuple[str, ...]:
    """The plug-ins of other packages, sorted. Their family is not known before they are loaded."""
    return tuple(sorted({point.name for point in _list_entry_points(group)}))


def _list_entry_points(group: str) -> Sequence[EntryPoint]:
    """The entry points of the group in all packages, each name once; a line on the log for each that is left out."""
    packages = tuple((folder, _read_change_time(folder)) for folder in sys.path)
    if _read.packages != packages:
        _read.packages, _read.all, _read.by_group = packages, _read_entry_points(packages), {}
    if group not in _read.by_group:
        chosen: dict[str, EntryPoint] = {}
        own_plugins = map_bundled_plugins(group)
        assert _read.all is not None
        for point in _read.all.select(group=f"chaoslab.{group}"):
            # Ours first, so that no plan means something else once a package is installed.
            if point.name in own_plugins or point.name in chosen:
                owner = "chaoslab" if point.name in own_plugins else _describe_origin(chosen[point.name])
                _warn_once(
                    f"the {_make_singular(group)} '{point.name}' of {_describe_origin(point)} is not used: {owner} "
                    f"has one of this name"
                )
            else:
                chosen[point.name] = point
        _read.by_group[group] = tuple(chosen.values())
    return _read.by_group[group]


def _read_entry_points(packages: Iterable[tuple[str, int]]) -> EntryPoints:
    """Those of all packages. Their files take some milliseconds to read, so this is done again only in folders where
    something has come or gone. Of a package in two folders the first counts."""
    from importlib.metadata import EntryPoints

    before, _read.by_folder = _read.by_folder, {}
    first: dict[str, Iterable[EntryPoint]] = {}
    for folder in packages:
        packages_read = before.get(folder)
        _read.by_folder[folder] = packages_read = (
            [*_iterate_entry_points(folder[0])] if packages_read is None else packages_read
        )
        for name, points in packages_read:
            first.setdefault(name, points)
    return EntryPoints(point for points in first.values() for point in points)


def _iterate_entry_points(folder: str) -> Iterator[tuple[str, Iterable[EntryPoint]]]:
    from importlib.metadata import distributions  # 35 ms, which few commands need

    for package in distributions(path=[folder]):
        try:
            # its name would be read from another file
            yield package._normalized_name, package.entry_points  # type: ignore[attr-defined]
        except Exception as error:  # noqa: BLE001 - importlib.metadata raises anything at a file that is none
            _warn_once(
                f"the plug-ins of the package {package.name} are not used: its entry_points.txt is malformed ({error})"
            )


@cache
def _warn_once(text: str) -> None:
    """Says something once, in one line on stderr."""
    import logging

    logging.getLogger("chaoslab").warning("%s", to_one_line(text, SAID))


def _describe_origin(point: EntryPoint) -> str:
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


def _read_change_time(folder: str) -> int:
    try:
        return os.stat(folder or ".").st_mtime_ns  # an empty entry of sys.path is the current folder
    except OSError:
        return 0


def register_plugin(group: str, name: str, class_: type) -> None:
    """Makes a class that no package registers a plug-in of this process, as a user's program does. Raises ValueError:
    another plug-in has the name."""
    previous = _added.get((group, name))
    is_redefined = previous is not None and (previous.__module__, previous.__qualname__) == (
        class_.__module__,
        class_.__qualname__,
    )
    if name in list_plugins(group) or (previous is not None and not is_redefined):
        raise ValueError(
            f"there is a {_make_singular(group)} '{name}' already: give the class {class_.__name__} another name"
        )
    _added[group, name] = class_  # a class that a notebook's cell has made anew takes the place of the old one
    load_plugin.cache_clear()


_added: dict[tuple[str, str], type] = {}
"""The classes that `register_plugin` was given, by group and name."""


@cache
def load_plugin(group: str, name: str) -> Any:
    """The plug-in's class. Only a plug-in that is found is cached. Raises LookupError: no such plug-in; the message
    names the nearest one. BrokenPlugin: it cannot be imported."""
    importlib.invalidate_caches()  # it may have been installed a moment ago, in a notebook
    for point in (point for point in _list_entry_points(group) if point.name == name):
        try:
            return point.load()
        except BaseException as error:
            reraise_unless_foreign(error)
            raise make_broken_plugin_error(group, name, describe_error(error)) from error
    if (group, name) in _added:
        return _added[group, name]
    module = map_bundled_plugins(group).get(name)
    if module is None:
        raise LookupError(
            f"no {_make_singular(group)} is called {repr_one_line(name)}: {suggest_name(name, list_plugins(group))}"
        )
    return getattr(importlib.import_module(module), "".join(part.capitalize() for part in name.split("_")))


def make_broken_plugin_error(group: str, name: str, reason: str) -> BrokenPlugin:
    """The error for a plug-in that cannot be used."""
    entry_point = next((point for point in _list_entry_points(group) if point.name == name), None)
    origin = (
        _describe_origin(entry_point)
        if entry_point is not None
        else "chaoslab"
        if name in map_bundled_plugins(group)
        else ""
    )
    source = f" of {origin}" if origin else ""  # else the user's own, given as an object
    return BrokenPlugin(to_one_line(f"the {_make_singular(group)} '{name}'{source} cannot be used: {reason}", SAID))


def _make_singular(group: str) -> str:
    """One plug-in of the group, in a word."""
    return group.rpartition(".")[2].removesuffix("s")


@cache
def map_bundled_plugins(group: str) -> dict[str, str]:
    """The lab's own plug-ins, by name: the module of each, in the group's package or in a family's."""
    package = importlib.import_module(f"chaoslab.{group}")
    modules: dict[str, str] = {}
    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        inside = importlib.import_module(module.name).__path__ if module.ispkg else None
        for submodule in [module] if inside is None else pkgutil.iter_modules(inside, f"{module.name}."):
            name = submodule.name.rpartition(".")[2]
            shared = name in getattr(package, "FAMILIES", ())
            modules |= dict.fromkeys(_list_module_plugins(submodule.name) if shared else (name,), submodule.name)
    return modules


def _list_module_plugins(module: str) -> Iterable[str]:
    """The public classes that a module defines, as the names of plug-ins."""
    named = vars(importlib.import_module(module)).items()
    class_names = [name for name, member in named if isinstance(member, type) and member.__module__ == module]
    return [to_snake_case(name) for name in class_names if not name.startswith("_")]


def to_snake_case(name: str) -> str:
    """The plug-in's name of a class: "LostReply" is "lost_reply"."""
    return re.sub("(?<=.)([A-Z])", r"_\1", name).lower()
