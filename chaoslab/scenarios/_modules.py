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

from chaoslab.scenarios.scenario import list_module_folders
from chaoslab.seams.functions.references import is_library_module


@dataclass
class _OwnModules:
    """The modules of some scenarios, by name, while no trial of these is under way. `added`: the folders that they put
    on the path themselves."""

    modules: dict[str, ModuleType] = field(default_factory=dict)
    added: list[str] = field(default_factory=list)


_modules_by_folders: dict[tuple[str, ...], _OwnModules] = {}
"""By the folders in which they were sought. They are kept, so that those of a folder are imported once."""


@contextmanager
def isolate_folder_modules(folder: Path | None, required: Iterable[str] = ()) -> Iterator[None]:
    """A context in which modules are sought in this folder first, then in the current one, and those of other folders
    are not there. `required`: the names, as in module:name, that must come from there even if an installed package
    of the same name was imported."""
    folders = [str(entry) for entry in list_module_folders(folder)]
    # A folder without Python has no modules that could hide others.
    if len(folders) > 1 and not any(Path(folders[0]).rglob("*.py")):
        del folders[0]
    own_modules = _modules_by_folders.setdefault(tuple(folders), _OwnModules())
    path_before = [*sys.path]
    places = [*folders, *own_modules.added]
    sys.path[:] = [*places, *(entry for entry in path_before if entry not in places)]
    is_library_module.cache_clear()
    hidden = _remove_packages(
        _find_shadowed_packages(folders, {_get_top_package(entry.partition(":")[0]) for entry in required})
    )
    loaded_before, path = _list_loaded_packages(), {*sys.path}
    sys.modules.update(own_modules.modules)
    is_library_module.cache_clear()
    try:
        yield
    finally:
        own_modules.added = [*own_modules.added, *(entry for entry in sys.path if entry not in path)]
        places = [*folders, *own_modules.added]
        new = _list_loaded_packages() - loaded_before
        own_modules.modules = _remove_packages(
            {name for name in new if not _find_module_folders(sys.modules.get(name)).isdisjoint(places)}
        )
        # Those that were there before: the rest of the process goes on with them.
        sys.modules.update(hidden)
        sys.path[:] = path_before
        is_library_module.cache_clear()


def _find_shadowed_packages(folders: Sequence[str], named: set[str]) -> set[str]:
    """The packages that are loaded, and that these folders have others of. Installed ones stay unless they are named,
    since the lab's own parts use them."""
    shadowed = set()
    for name in _list_loaded_packages() - sys.stdlib_module_names - {"__main__", "chaoslab"}:
        if is_library_module(name) and name not in named:
            continue
        # The path's finder alone: importlib's own would answer with what is loaded.
        spec = PathFinder.find_spec(name, [*folders])
        own_file = spec.origin if spec is not None else None
        loaded_file = getattr(sys.modules.get(name), "__file__", None)
        # By the real file: the folder may be reached by a link.
        if own_file and loaded_file and os.path.realpath(own_file) != os.path.realpath(loaded_file):
            shadowed.add(name)
    return shadowed


def _remove_packages(packages: set[str]) -> dict[str, ModuleType]:
    """Takes packages with all their modules out of the process."""
    names = [name for name in list(sys.modules) if _get_top_package(name) in packages] if packages else []
    return {name: sys.modules.pop(name) for name in names}


def _find_module_folders(module: ModuleType | None) -> set[str]:
    """The folders in which a package or a module was found."""
    paths = list(getattr(module, "__path__", ()))
    file = getattr(module, "__file__", None)
    return {os.path.dirname(path) for path in paths or ([file] if file else [])}


def _list_loaded_packages() -> set[str]:
    """The packages and modules that are loaded, without the parts of packages."""
    return {name for name in list(sys.modules) if "." not in name}


def _get_top_package(module: str) -> str:
    return module.partition(".")[0]
