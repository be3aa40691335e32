"""The modules that scenarios name. Each folder of scenarios has its own, though another has modules of the same names.
Python keeps one module of a name for the whole process, so the second of two folders that both have an `agent.py` would
silently be tried with the agent of the first."""

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType

from chaoslab.scenarios.scenario import folders_of
from chaoslab.seams.functions.references import is_installed


@dataclass
class _Own:
    """The modules of some scenarios, by name, while no trial of these is under way. `added`: the folders that they put
    on the path themselves."""

    modules: dict[str, ModuleType] = field(default_factory=dict)
    added: list[str] = field(default_factory=list)


_own: dict[tuple[str, ...], _Own] = {}
"""By the folders in which they were sought. They are kept, so that those of a folder are imported once."""


@contextmanager
def modules_of(folder: Path | None, named: Iterable[str] = ()) -> Iterator[None]:
    """A context in which modules are sought in this folder first, then in the current one, and those of other folders
    are not there. `named`: the names, as in module:name, that must come from there even if an installed package of the
    same name was imported."""
    folders = [str(each) for each in folders_of(folder)]
    if len(folders) > 1 and not any(Path(folders[0]).rglob("*.py")):
        del folders[0]
    own = _own.setdefault(tuple(folders), _Own())
    path_before = [*sys.path]
    places = [*folders, *own.added]
    sys.path[:] = [*places, *(each for each in path_before if each not in places)]
    is_installed.cache_clear()
    hidden = _taken(_shadowed(folders, {_top(each.partition(":")[0]) for each in named}))
    known, path = _tops(), {*sys.path}
    sys.modules.update(own.modules)
    is_installed.cache_clear()
    try:
        yield
    finally:
        own.added = [*own.added, *(each for each in sys.path if each not in path)]
        places = [*folders, *own.added]
        new = _tops() - known
        own.modules = _taken({name for name in new if not _roots(sys.modules.get(name)).isdisjoint(places)})
        sys.modules.update(hidden)
        sys.path[:] = path_before
        is_installed.cache_clear()


def _shadowed(folders: Sequence[str], named: set[str]) -> set[str]:
    """The packages that are loaded, and that these folders have others of. Installed ones stay unless they are named,
    since the lab's own parts use them."""
    found = set()
    for name in _tops() - sys.stdlib_module_names - {"__main__", "chaoslab"}:
        if is_installed(name) and name not in named:
            continue
        spec = PathFinder.find_spec(name, [*folders])
        here = spec.origin if spec is not None else None
        there = getattr(sys.modules.get(name), "__file__", None)
        if here and there and os.path.realpath(here) != os.path.realpath(there):
            found.add(name)
    return found


def _taken(packages: set[str]) -> dict[str, ModuleType]:
    """Takes packages with all their modules out of the process."""
    names = [name for name in list(sys.modules) if _top(name) in packages] if packages else []
    return {name: sys.modules.pop(name) for name in names}


def _roots(module: ModuleType | None) -> set[str]:
    """The folders in which a package or a module was found."""
    paths = list(getattr(module, "__path__", ()))
    file = getattr(module, "__file__", None)
    return {os.path.dirname(each) for each in paths or ([file] if file else [])}


def _tops() -> set[str]:
    """The packages and modules that are loaded, without the parts of packages."""
    return {name for name in list(sys.modules) if "." not in name}


def _top(module: str) -> str:
    return module.partition(".")[0]
