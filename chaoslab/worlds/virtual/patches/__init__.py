"""Fakes for the real clock, chance, threads and sockets, installed while virtual worlds run and removed afterwards.

In a thread of the process that runs a world the fakes lead into it; in every other thread they act like the real
thing. Each module of this package has `patches()`, and if needed `installed()`, a context that is entered as well, and
`LATER`, the names of modules for which `patches()` has more once they have loaded (`import_hook.py`).
"""

import contextlib
import importlib
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import MethodType, ModuleType, TracebackType
from typing import Any, ClassVar

from chaoslab.base.garbage import pause_collector
from chaoslab.worlds.virtual.patches.import_hook import ImportHook
from chaoslab.worlds.virtual.patches.swap import Swap, wrap_as_class_attribute

MODULES = (
    "clocks",
    "chance",
    "ids",
    "computer",
    "files",
    "threads",
    "set_order",
    "sockets",
    "certificates",
    "collector",
    "refusals",
    "tracing",
)
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

    _depth: ClassVar[int] = 0
    _current: "ClassVar[Installation | None]" = None
    """A process has one set of modules, so it has one installation."""

    def __enter__(self) -> "Installation":
        # On the class, since a nested context may be another object.
        cls = type(self)
        if cls._current is None:
            installation = Installation()
            try:
                with pause_collector():  # the many short lists of a search would set off several of everything
                    installation.install_all_patches()
            except BaseException:
                # What was put in place before the error must not stay.
                installation.restore_real_objects()
                raise
            cls._current = installation
        cls._depth += 1
        return cls._current

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        cls = type(self)
        cls._depth -= 1
        if cls._depth or cls._current is None:
            return
        installation, cls._current = cls._current, None
        try:
            with pause_collector():
                installation.restore_real_objects()
        except BaseException:  # for example Ctrl-C: the rest is restored before it goes on
            installation.restore_real_objects()
            raise


class Installation:
    """The fakes that are in place, and the real things to restore."""

    def __init__(self) -> None:
        self._undo: list[tuple[Any, str, Any]] = []
        self._swaps: list[Swap] = []
        self._hook = ImportHook(set(), lambda: None)
        self._stack = contextlib.ExitStack()

    def list_swapped_pairs(self) -> list[tuple[Any, Any]]:
        """The pairs of real thing and fake that are swapped in modules, for a caller that knows more places. Bound
        methods are left out, since their owner would be every generator or every socket."""
        pairs = [pair for swap in self._swaps for pair in swap.list_real_fake_pairs()]
        return [
            (real, wrap_as_class_attribute(real, stand_in))
            for real, stand_in in pairs
            if not isinstance(real, MethodType)
        ]

    def install_all_patches(self) -> None:
        """Puts every fake in place, those for modules that are not loaded yet as soon as they are."""
        for module in _iterate_patch_modules():
            if hasattr(module, "installed"):
                self._stack.enter_context(module.installed())
        self._install_patches(iterate_patches())
        later = {
            name
            for module in _iterate_patch_modules()
            for name in getattr(module, "LATER", ())
            if name not in sys.modules
        }
        self._hook = ImportHook(later, lambda: self._install_patches(list(iterate_patches())))
        self._hook.install_finder()

    def _install_patches(self, patches: Iterable[Patch]) -> None:
        """Installs the patches that are not in place yet."""
        everywhere: dict[int, tuple[Any, Any]] = {}
        # By place: a module that loads later has all patches listed again.
        placed = {(id(holder), name) for holder, name, _ in self._undo}
        for patch in patches:
            if (id(patch.holder), patch.name) in placed:  # the first one stays
                continue
            placed.add((id(patch.holder), patch.name))
            real = getattr(patch.holder, patch.name)
            # From the class's own dictionary: an inherited method is taken away again, and not set.
            self._undo.append((patch.holder, patch.name, vars(patch.holder).get(patch.name, _ABSENT)))
            setattr(patch.holder, patch.name, patch.value)
            if patch.everywhere:
                everywhere[id(real)] = (real, patch.value)
        swap = Swap(everywhere)
        self._swaps.append(swap)
        swap.replace_everywhere()

    def restore_real_objects(self) -> None:
        """Restores everything. It may be called again after an interruption: finished steps are not repeated."""
        self._hook.remove_finder()
        if self._swaps:
            # Together: one search of all modules in place of one for each.
            Swap.merge_swaps(self._swaps).restore_everywhere()
            self._swaps.clear()
        while self._undo:
            # Taken off the list only when it is done, so that an interrupted take-back can go on.
            holder, name, real = self._undo[-1]
            if real is not _ABSENT:
                setattr(holder, name, real)
            elif name in vars(holder):
                delattr(holder, name)
            self._undo.pop()
        self._stack.close()


def iterate_patches() -> Iterable[Patch]:
    """All patches for the modules that are loaded, in the order of installation."""
    for module in _iterate_patch_modules():
        yield from module.patches()


def _iterate_patch_modules() -> Iterator[ModuleType]:
    for name in MODULES:
        yield importlib.import_module(f"{__name__}.{name}")
