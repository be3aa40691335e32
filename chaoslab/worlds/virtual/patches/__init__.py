"""What stands in for the real clock, chance, threads and sockets while virtual worlds run, and is taken back afterwards.

In a thread of the process that runs a world the stand-ins lead into it, in every other thread they do what the real thing does. Each
module of this package has `patches()`, and where it needs them: `installed()`, a context that is entered as well; `begin(world)`,
called before every run; and `LATER`, names of modules for which `patches()` has more to say once somebody has imported them.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import FunctionType, MethodType, ModuleType, TracebackType
from typing import TYPE_CHECKING, Any, ClassVar

from chaoslab.worlds.virtual.patches.swap import Swap

if TYPE_CHECKING:
    from chaoslab.worlds.virtual.world import World

MODULES = ("clocks", "chance", "ids", "threads", "order", "sockets", "refusals")
_ABSENT = object()


@dataclass(frozen=True)
class Patch:
    """`holder.name` is `value` meanwhile. `everywhere`: also wherever else the same object is known by any name."""

    holder: Any
    name: str
    value: Any
    everywhere: bool = False


class Patches:
    """A context, which may be entered within itself: only the outermost does anything. Not for two threads at once."""

    _depth = 0
    _undo: ClassVar[list[tuple[Any, str, Any]]] = []
    _swaps: ClassVar[list[Swap]] = []
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
            except BaseException:  # such as Ctrl-C: what is left is taken back before it goes on
                self._take_back()
                raise

    @classmethod
    def exchanged(cls) -> list[tuple[Any, Any]]:
        """What is exchanged wherever a module knows it, for whoever knows of more places: the real thing, and what stands in for it. Not a
        bound method, whose owner would be every generator's or every socket's."""
        pairs = [pair for swap in cls._swaps for pair in swap.pairs()]
        return [(real, _unbound(stand_in)) for real, stand_in in pairs if not isinstance(real, MethodType)]

    def _install(self) -> None:
        for module in _modules():
            if hasattr(module, "installed"):
                self._stack.enter_context(module.installed())
        self._put(all_patches())
        _begin.expect()

    @classmethod
    def _put(cls, patches: Iterable[Patch]) -> None:
        """Those that are not in place yet."""
        everywhere: dict[int, tuple[Any, Any]] = {}
        there = {(id(holder), name) for holder, name, _ in cls._undo}
        for patch in patches:
            if (id(patch.holder), patch.name) in there:  # whoever came first has it
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
        """As often as need be: what is done is not done again."""
        _begin.hooks, _begin.waits_for = [], set()
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


def _unbound(stand_in: Any) -> Any:
    """What does not become a method where it is an attribute of a class: the real thing would not."""
    return functools.partial(stand_in) if isinstance(stand_in, FunctionType) else stand_in


class _Begin:
    """What is to be done before a run: little, since there may be thousands a second."""

    def __init__(self) -> None:
        self.hooks: list[Callable[[World], None]] = []
        self.waits_for: set[str] = set()
        self._loaded = 0
        self._lock = threading.Lock()

    def expect(self) -> None:
        self.hooks = [module.begin for module in _modules() if hasattr(module, "begin")]
        self._loaded = len(sys.modules)
        self.waits_for = {
            name for module in _modules() for name in getattr(module, "LATER", ()) if name not in sys.modules
        }

    def __call__(self, world: World) -> None:
        if self.waits_for and len(sys.modules) != self._loaded:
            with self._lock:
                self._loaded = len(sys.modules)
                if come := {name for name in self.waits_for if name in sys.modules}:
                    self.waits_for -= come
                    Patches._put(all_patches())
        for hook in self.hooks:
            hook(world)


begin = _begin = _Begin()
"""Told of every run before it begins."""


def all_patches() -> Iterable[Patch]:
    """Every patch there is for the modules that are loaded, in the order of installing."""
    for module in _modules():
        yield from module.patches()


def _modules() -> Iterator[ModuleType]:
    for name in MODULES:
        yield importlib.import_module(f"{__name__}.{name}")
