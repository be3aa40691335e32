"""Foreign modules that others load with themselves, and of which the lab uses nothing: a quarter of the time in which
LangChain loads."""

import sys
from collections.abc import Sequence
from importlib.abc import Loader
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any


def put_off(name: str, *functions: str) -> None:
    """Has a module load once a name of it is asked for, rather than when another module imports it, a part of it, or
    these functions of it. They load it when they are called. Of a module that is loaded already nothing changes."""
    sys.meta_path.insert(0, _Finder(name, functions))


class _Finder:
    def __init__(self, name: str, functions: Sequence[str]) -> None:
        self._name, self._functions = name, functions

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path, target) if name == self._name else None
        if spec is not None and spec.loader is not None:
            spec.loader = _Later(spec.loader, self._functions)
        return spec


class _Later(Loader):
    def __init__(self, loader: Loader, functions: Sequence[str]) -> None:
        self._loader, self._functions = loader, functions

    def exec_module(self, module: ModuleType) -> None:
        def asked_for(attribute: str) -> Any:
            if attribute.startswith("__") and attribute != "__all__":  # Python's own questions
                raise AttributeError(f"module {module.__name__!r} has no attribute {attribute!r}")
            for waiting in ("__getattr__", *self._functions):
                module.__dict__.pop(waiting, None)
            self._loader.exec_module(module)
            return getattr(module, attribute)

        def called(function: str) -> Any:
            def call(*args: Any, **given: Any) -> Any:
                found = getattr(module, function)
                return (asked_for(function) if found is call else found)(*args, **given)

            return call

        assert module.__spec__ is not None
        module.__spec__.loader = module.__loader__ = self._loader
        module.__dict__.update({"__getattr__": asked_for}, **{each: called(each) for each in self._functions})
