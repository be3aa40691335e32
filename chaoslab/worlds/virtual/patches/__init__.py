"""What stands in for the real clock, chance, threads and sockets while virtual worlds run, and is taken back afterwards.

Each module of this package lists patches. In the thread of the process that runs a world they lead into it, in every other thread
they do what the real thing does.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, ClassVar

from chaoslab.worlds.virtual.patches.swap import Swap

MODULES = ("clocks", "chance", "threads", "order", "sockets", "refusals")


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
    _swap: Swap | None = None

    def __enter__(self) -> Patches:
        cls = type(self)
        if not cls._depth:
            cls._undo = []
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
            self._take_back()

    def _install(self) -> None:
        everywhere: dict[int, tuple[Any, Any]] = {}
        for patch in all_patches():
            real = getattr(patch.holder, patch.name)
            self._undo.append((patch.holder, patch.name, real))
            setattr(patch.holder, patch.name, patch.value)
            if patch.everywhere:
                everywhere[id(real)] = (real, patch.value)
        type(self)._swap = swap = Swap(everywhere)
        swap.do()

    def _take_back(self) -> None:
        cls = type(self)
        if cls._swap is not None:
            cls._swap.undo()
            cls._swap = None
        while cls._undo:
            holder, name, real = cls._undo.pop()
            setattr(holder, name, real)


def all_patches() -> Iterable[Patch]:
    """Every patch there is, in the order of installing."""
    for name in MODULES:
        yield from importlib.import_module(f"{__name__}.{name}").patches()
