"""What a program imports in mid-trial is patched as soon as it has loaded, so that no trial depends on which of them imported it.

It loads outside of any world, as it would have before: what it draws from chance meanwhile is not missing in this trial alone.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from chaoslab.worlds.virtual.here import here


class Arrivals:
    """A finder of modules that finds what the others find. `arrived` is called after each of `names` has loaded, by one thread at a time."""

    def __init__(self, names: set[str], arrived: Callable[[], None]) -> None:
        self._names, self._arrived = names, arrived
        self._lock = threading.RLock()
        self._now = False
        self._again = False

    def watch(self) -> None:
        sys.meta_path.insert(0, self)

    def end(self) -> None:
        with self._lock:
            if self in sys.meta_path:
                sys.meta_path.remove(self)

    def find_spec(self, name: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name not in self._names:
            return None
        for finder in list(sys.meta_path):
            find = None if finder is self else getattr(finder, "find_spec", None)
            if find is not None and (spec := find(name, path, target)) is not None:
                if hasattr(spec.loader, "exec_module"):
                    spec.loader = _Loader(spec.loader, self.loaded)
                found: ModuleSpec = spec
                return found
        return None

    def loaded(self) -> None:
        """Also of what loads while others are being patched, on which whoever patches looks once more."""
        with self._lock:
            self._again = True
            if self._now or self not in sys.meta_path:
                return
            self._now = True
            try:
                while self._again:
                    self._again = False
                    self._arrived()
            finally:
                self._now = False


class _Loader:
    """The real one, of which nothing else is to be seen once the module is there."""

    def __init__(self, real: Any, loaded: Callable[[], None]) -> None:
        self._real, self._loaded = real, loaded

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        outer, here.world = here.world, None
        try:
            made: ModuleType | None = self._real.create_module(spec)
        finally:
            here.world = outer
        return made

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._real
        if module.__spec__ is not None:
            module.__spec__.loader = self._real
        outer, here.world = here.world, None
        try:
            self._real.exec_module(module)
            self._loaded()
        finally:
            here.world = outer
