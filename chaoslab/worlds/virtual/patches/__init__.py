"""Stand-ins for the real clock, chance, threads and sockets, installed while virtual worlds run and removed afterwards.

In a thread of the process that runs a world the stand-ins lead into it; in every other thread they act like the real
thing. Each module of this package has `patches()`, and if needed `installed()`, a context that is entered as well, and
`LATER`, the names of modules for which `patches()` has more once they have loaded (`import_hook.py`).
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import MethodType, ModuleType, TracebackType
from typing import Any, ClassVar

from chaoslab.worlds.virtual.patches.import_hook import ImportHook
from chaoslab.worlds.virtual.patches.swap import Swap, fitting

MODULES = ("clocks", "chance", "ids", "computer", "threads", "set_order", "sockets", "refusals")
_ABSENT = object()


@dataclass(frozen=True)
class Patch:
    """A replacement of `holder.name` by `value`. `everywhere`: also of the same object under any other name."""

    holder: Any
    name: str
    value: Any
    everywhere: bool = False


class Patches:
    """A context that may be nested: only the outermost does anything. Not for two threads at once."""

    _depth = 0
    _undo: ClassVar[list[tuple[Any, str, Any]]] = []
    _swaps: ClassVar[list[Swap]] = []
    _arrivals = ImportHook(set(), lambda: None)
    _stack = contextlib.ExitStack()

    def __enter__(self) -> Patches:
        cls = type(self)
        if not cls._depth:
            try:
                self._install()
            except BaseException:
                self._take_back()
                raise
        cls._depth += 1
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        cls = type(self)
        cls._depth -= 1
        if not cls._depth:
            try:
                self._take_back()
            except BaseException:  # for example Ctrl-C: the rest is restored before it goes on
                self._take_back()
                raise

    @classmethod
    def exchanged(cls) -> list[tuple[Any, Any]]:
        """The pairs of real thing and stand-in that are swapped in modules, for a caller that knows more places. Bound
        methods are left out, since their owner would be every generator or every socket."""
        pairs = [pair for swap in cls._swaps for pair in swap.pairs()]
        return [(real, fitting(real, stand_in)) for real, stand_in in pairs if not isinstance(real, MethodType)]

    def _install(self) -> None:
        for module in _modules():
            if hasattr(module, "installed"):
                self._stack.enter_context(module.installed())
        self._put(all_patches())
        later = {name for module in _modules() for name in getattr(module, "LATER", ()) if name not in sys.modules}
        type(self)._arrivals = ImportHook(later, lambda: self._put(list(all_patches())))
        self._arrivals.watch()

    @classmethod
    def _put(cls, patches: Iterable[Patch]) -> None:
        """Installs the patches that are not in place yet."""
        everywhere: dict[int, tuple[Any, Any]] = {}
        there = {(id(holder), name) for holder, name, _ in cls._undo}
        for patch in patches:
            if (id(patch.holder), patch.name) in there:  # the first one stays
                continue
            there.add((id(patch.holder), patch.name))
            real = getattr(patch.holder, patch.name)
            cls._undo.append((patch.holder, patch.name, vars(patch.holder).get(patch.name, _ABSENT)))
            setattr(patch.holder, patch.name, patch.value)
            if patch.everywhere:
                everywhere[id(real)] = (real, patch.value)
        swap = Swap(everywhere)
        cls._swaps.append(swap)
        swap.do()

    @classmethod
    def _take_back(cls) -> None:
        """Restores everything. It may be called again after an interruption: finished steps are not repeated."""
        cls._arrivals.end()
        if cls._swaps:
            Swap.joined(cls._swaps).undo()
            cls._swaps.clear()
        while cls._undo:
            holder, name, real = cls._undo[-1]
            if real is not _ABSENT:
                setattr(holder, name, real)
            elif name in vars(holder):
                delattr(holder, name)
            cls._undo.pop()
        cls._stack.close()


def all_patches() -> Iterable[Patch]:
    """All patches for the modules that are loaded, in the order of installation."""
    for module in _modules():
        yield from module.patches()


def _modules() -> Iterator[ModuleType]:
    for name in MODULES:
        yield importlib.import_module(f"{__name__}.{name}")
