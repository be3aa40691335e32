"""Imports during a trial, without an effect on the trial that happens to import first.

A module to be patched loads outside of any world, as it would have before, and is patched at once. All others load in
the world, with their own chance.
"""

import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from chaoslab.worlds.virtual.machine.context import here, within


class ImportHook:
    """A finder that delegates to the other finders. `arrived` is called after each of `names` has loaded, by one thread
    at a time."""

    def __init__(self, names: set[str], arrived: Callable[[], None]) -> None:
        self._names, self._arrived = names, arrived
        # Reentrant: patching may import modules, which are found here again.
        self._lock = threading.RLock()
        self._now = False
        self._again = False

    def install_finder(self) -> None:
        # First, or another finder would have the module before.
        sys.meta_path.insert(0, self)

    def remove_finder(self) -> None:
        with self._lock:
            if self in sys.meta_path:
                sys.meta_path.remove(self)

    def find_spec(self, name: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        patched = name in self._names
        if not patched and here.world is None:
            return None
        # A copy: a finder may change the list.
        for finder in list(sys.meta_path):
            find = None if finder is self else getattr(finder, "find_spec", None)
            if find is not None and (spec := find(name, path, target)) is not None:
                # Loaders of the old kind have nothing to wrap.
                if hasattr(spec.loader, "exec_module"):
                    spec.loader = _Loader(spec.loader, name, self.patch_new_module if patched else None)
                hooked_spec: ModuleSpec = spec
                return hooked_spec
        return None

    def patch_new_module(self) -> None:
        """Has the new module patched. If it loads while others are being patched, the patching thread looks once
        more."""
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
    """The real loader, which replaces this one once the module is there. `loaded`: called after loading if the module
    is to be patched."""

    def __init__(self, real: Any, name: str, loaded: Callable[[], None] | None) -> None:
        self._real, self._name, self._loaded = real, name, loaded

    def __getattr__(self, name: str) -> Any:
        # Whoever asks the loader for a source or a resource gets the real one's answer.
        return getattr(self._real, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        with self._isolate_import():
            module: ModuleType | None = self._real.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        # Taken out before the module runs, so that it finds the loader that it would have had.
        module.__loader__ = self._real
        if module.__spec__ is not None:
            module.__spec__.loader = self._real
        with self._isolate_import():
            self._real.exec_module(module)
            if self._loaded is not None:
                self._loaded()

    def _isolate_import(self) -> AbstractContextManager[None]:
        if self._loaded is not None:
            return within(None)
        return nullcontext() if here.world is None else here.world.isolate_import(self._name)
