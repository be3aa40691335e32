"""Fakes for `open` and the functions of `os` and `shutil` that touch a file in the trial's folder."""

import builtins
import io
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from functools import partial, wraps
from typing import Any

from chaoslab.core.machine import DELETE, FIRST, LATEST, MOVE, READ, WRITE
from chaoslab.seams.functions.seam import FunctionSeam
from chaoslab.seams.functions.wrapped import WrappedFunction

Act = Callable[[str], Any]
"""Does what a call asks for, given the version of the file to read."""
BY_PATH = {
    DELETE: ((os, "remove unlink rmdir"), (shutil, "rmtree")),
    WRITE: ((os, "mkdir truncate"),),
    MOVE: ((os, "rename replace"), (shutil, "move")),
}
"""The functions that take a path first, by the target that their calls are of."""


class FileCalls:
    """The calls that touch a file below `folder`, which is empty while no trial is under way. A call within another is
    none of its own."""

    def __init__(self, seam: FunctionSeam) -> None:
        self.folder = self.source = ""
        self._seam, self._inner = seam, threading.local()
        self._stand_ins = {
            name: seam.make_fake_function(WrappedFunction(name, function, effect=False, hidden=frozenset({"act"})))
            for name, function in (
                (READ, self._run_file_read),
                (WRITE, self._run_file_change),
                (DELETE, self._run_file_change),
                (MOVE, self._run_file_change),
            )
        }

    def list_patches(self) -> Iterator[tuple[Any, str, Callable[..., Any]]]:
        """Each fake, with the module and the name that it is for."""
        opened = self._wrap_open(builtins.open)
        yield builtins, "open", opened
        yield io, "open", opened
        for target, modules in BY_PATH.items():
            for module, names in modules:
                for name in names.split():
                    yield module, name, self._wrap_path_call(target, getattr(module, name))

    def _run_file_change(self, path: str, act: Act, **changes: Any) -> Any:  # noqa: ARG002 - the path is for the log
        """Does it. `changes`: a fault's: only a `share` of what is written into the file is kept."""
        return self._run_file_action(act, LATEST, changes.get("share"))

    def _run_file_read(self, path: str, act: Act, version: str = LATEST) -> Any:  # noqa: ARG002
        return self._run_file_action(act, version)

    def _run_file_action(self, act: Act, version: str, share: float | None = None) -> Any:
        self._inner.busy = True
        try:
            answer = act(version)
        finally:
            self._inner.busy = False
        if share is not None and isinstance(answer, io.IOBase):
            vars(answer)["close"] = partial(_truncate_and_close, answer, answer.close, share, _get_file_size(answer))
        return answer

    def _get_path_in_folder(self, path: Any) -> str:
        """The path within the folder; empty if it is elsewhere, or this is no call of its own."""
        if not self.folder or self._seam.book is None or getattr(self._inner, "busy", False):
            return ""
        if not isinstance(path, str | bytes | os.PathLike):
            return ""
        full = os.path.abspath(os.fsdecode(path))
        return os.path.relpath(full, self.folder) if full.startswith(f"{self.folder}{os.sep}") else ""

    def _wrap_path_call(self, target: str, real: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(real)
        def stand_in(*args: Any, **kwargs: Any) -> Any:
            path = "" if kwargs.get("dir_fd") is not None or not args else self._get_path_in_folder(args[0])
            if not path:
                return real(*args, **kwargs)
            return self._stand_ins[target](path, lambda _: real(*args, **kwargs))

        return stand_in

    def _wrap_open(self, real: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(real)
        def stand_in(file: Any, mode: Any = "r", *args: Any, **kwargs: Any) -> Any:
            if not (path := self._get_path_in_folder(file)):
                return real(file, mode, *args, **kwargs)
            if set(str(mode)) & set("wax+"):
                return self._stand_ins[WRITE](path, lambda _: real(file, mode, *args, **kwargs))
            first, names = os.path.join(self.source, path), {LATEST: file}
            version = FIRST if _get_time_and_size(first) == _get_time_and_size(file) else LATEST

            def open_file_version(version: str) -> Any:
                return real(names.get(version, first), mode, *args, **kwargs)

            return self._stand_ins[READ](path, open_file_version, version)

        return stand_in


def _get_time_and_size(path: Any) -> tuple[int, int]:
    """The moment and the size of a file, which a copy of it has too; nothing of one that is not there."""
    try:
        status = os.stat(path)
    except OSError:
        return 0, 0
    return status.st_mtime_ns, status.st_size


def _get_file_size(file: io.IOBase) -> int:
    return os.fstat(file.fileno()).st_size


def _truncate_and_close(file: Any, close: Callable[[], None], share: float, start: int) -> None:
    """Closes a file, of which only this share is there of what came behind the first `start` bytes."""
    if not file.closed:
        file.flush()
        os.truncate(file.fileno(), start + int((_get_file_size(file) - start) * share))
        close()
