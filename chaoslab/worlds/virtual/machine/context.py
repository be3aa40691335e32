"""The virtual world of the present thread, if any, and the error for anything that no such world can carry."""

from __future__ import annotations

import sys
import sysconfig
import threading
from contextlib import AbstractContextManager
from types import FrameType
from typing import TYPE_CHECKING, Any, Protocol

from chaoslab.base.boundary import Through
from chaoslab.base.levers import out_of_time
from chaoslab.base.user_line import is_trampoline

if TYPE_CHECKING:
    from chaoslab.base.dice import Dice
    from chaoslab.worlds.virtual.machine.machine import Machine


class Computer(Protocol):
    """A world, of which `world.World` is the one kind, as its machine and the fakes know it. `ended_by`: the first
    thing that the program did and no trial goes on after; `kept`: the state of the fakes."""

    machine: Machine
    ended_by: Unsupported | ProcessEnded | None
    dice: Dice
    labels: Dice
    kept: dict[str, Any]

    def time_ns(self) -> int: ...
    def time(self) -> float: ...
    def isolate_import(self, module: str) -> AbstractContextManager[None]: ...
    @property
    def has_program_drawn_chance(self) -> bool: ...


# A thread-local: in threads of the process that run no world, everything is real.
class _Here(threading.local):
    world: Computer | None = None


here = _Here()
out_of_time.append(lambda: here.world is not None)


class within:
    """A context in which this thread is in that world, or in none. A trial enters three, and a generator's takes four
    times as long."""

    __slots__ = ("_outer", "_world")

    def __init__(self, world: Computer | None) -> None:
        self._world = world

    def __enter__(self) -> None:
        self._outer, here.world = here.world, self._world

    def __exit__(self, *_: object) -> None:
        here.world = self._outer


def get_world() -> Computer:
    """The world of this thread."""
    current = here.world
    if current is None:
        raise RuntimeError("no virtual world runs in this thread")
    return current


class Unsupported(Through):
    """The program did something real that virtual time does not cover; the message has the place and a remedy.

    The world remembers the first one raised in it, since an agent may swallow it.
    """

    def __init__(self, feature: str, remedy: str, otherwise: str = "run in real time (world='local')") -> None:
        super().__init__(f"{feature}{describe_caller()} is not covered by virtual time: {remedy}, or {otherwise}")
        _record_program_end(self)

    def __reduce__(self) -> tuple[Any, ...]:
        # The words are made: built anew in another process, it would look for the caller there.
        return _rebuild_unsupported_error, self.args


class ProcessEnded(BaseException):
    """The program did what would have ended its process, and with it the lab; the message has the place. The trial ends
    with it, even if the program swallows it. `of_a_fault`: a fault's code did it, so it is none of the program's."""

    of_a_fault = False

    def __init__(self, call_text: str) -> None:
        super().__init__(f"it ended the process at {locate_caller() or 'an unknown place'} ({call_text})")
        self.of_a_fault = _is_called_by_core()
        if not self.of_a_fault:
            _record_program_end(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild_process_ended_error, self.args


def _record_program_end(error: Unsupported | ProcessEnded) -> None:
    if here.world is not None and here.world.ended_by is None:
        here.world.ended_by = error


def _rebuild_unsupported_error(text: str) -> Unsupported:
    """The error, rebuilt from its message in another process."""
    # Past `__init__`, which would note it in this process's world.
    error = Unsupported.__new__(Unsupported)
    error.args = (text,)
    return error


def _rebuild_process_ended_error(text: str) -> ProcessEnded:
    error = ProcessEnded.__new__(ProcessEnded)
    error.args = (text,)
    return error


_OWN = "chaoslab."
# Frozen modules have no path: importlib's own frames.
_STDLIB = (*{sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")}, "<frozen")
_INSTALLED = ("site-packages", "dist-packages")


def describe_caller() -> str:
    """The program's innermost frame as text, as in " (in my_agent.py, line 12, book)"; a library's frame if there is no
    other."""
    frame = _find_program_frame()
    return "" if frame is None else f" (in {_get_file_name(frame)}, line {frame.f_lineno}, {frame.f_code.co_name})"


def locate_caller() -> str:
    """The same frame, as in "my_agent.py:12 in book"."""
    frame = _find_program_frame()
    return "" if frame is None else f"{_get_file_name(frame)}:{frame.f_lineno} in {frame.f_code.co_name}"


def _is_called_by_core() -> bool:
    """Tells if the lab's innermost frame below a patch is of the core, which calls the code of faults alone."""
    # Past this function and the error's `__init__`.
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        name = str(frame.f_globals.get("__name__", ""))
        if name.startswith(_OWN) and not name.startswith(f"{_OWN}worlds.virtual."):
            return name.startswith(f"{_OWN}core.")
        frame = frame.f_back
    return False


def _find_program_frame() -> FrameType | None:
    frame: FrameType | None = sys._getframe(1)
    nearest = None
    while frame is not None:
        of_lab = str(frame.f_globals.get("__name__", "")).startswith(_OWN) or is_trampoline(frame.f_code)
        if not of_lab:
            nearest = nearest or frame
            if not _is_library_file(frame.f_code.co_filename):
                return frame
        frame = frame.f_back
    return nearest


def _is_library_file(file: str) -> bool:
    """True if the file is a library's: then its caller is the one to name."""
    return file.startswith(_STDLIB) or any(folder in file for folder in _INSTALLED)


def _get_file_name(frame: FrameType) -> str:
    """The name of the frame's file without its folder, which differs between machines."""
    return frame.f_code.co_filename.rpartition("/")[2]
