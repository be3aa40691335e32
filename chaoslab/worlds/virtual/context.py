"""Which world this thread of the process is in, if any; and what is said of what no world can carry."""

from __future__ import annotations

import sys
import sysconfig
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chaoslab.worlds.virtual.world import World


class _Here(threading.local):
    world: World | None = None


here = _Here()


@contextmanager
def within(world: World | None) -> Iterator[None]:
    """This thread is in that world meanwhile, or in none."""
    outer, here.world = here.world, world
    try:
        yield
    finally:
        here.world = outer


def world() -> World:
    """The world of this thread."""
    found = here.world
    if found is None:
        raise RuntimeError("no virtual world runs in this thread")
    return found


class Unsupported(BaseException):
    """The program did something real that virtual time cannot stand for: says what, where, and what to do.

    No `Exception`, since an agent would take it for one more failure and go on; and whoever raises it remembers it in the world.
    """

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(f"{what}{caller()} is not covered by virtual time: {remedy}, or run in the local world")
        if here.world is not None and here.world.uncovered is None:
            here.world.uncovered = self

    def __reduce__(self) -> tuple[Any, ...]:
        return _in_these_words, self.args


def _in_these_words(text: str) -> Unsupported:
    """As another process said it."""
    error = Unsupported.__new__(Unsupported)
    error.args = (text,)
    return error


_OWN = "chaoslab."
_STDLIB = (*{sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")}, "<frozen")
_INSTALLED = ("site-packages", "dist-packages")


def caller() -> str:
    """ " (in my_agent.py, line 12, book)": the innermost frame of the program's own code; of a library's, if there is no other."""
    frame = _own_frame()
    return "" if frame is None else f" (in {_file(frame)}, line {frame.f_lineno}, {frame.f_code.co_name})"


def own_line() -> str:
    """The same as "my_agent.py:12 in book"."""
    frame = _own_frame()
    return "" if frame is None else f"{_file(frame)}:{frame.f_lineno} in {frame.f_code.co_name}"


def _own_frame() -> FrameType | None:
    frame: FrameType | None = sys._getframe(1)
    nearest = None
    while frame is not None:
        if not str(frame.f_globals.get("__name__", "")).startswith(_OWN):
            nearest = nearest or frame
            if not _does_as_told(frame.f_code.co_filename):
                return frame
        frame = frame.f_back
    return nearest


def _does_as_told(file: str) -> bool:
    """Whether it is a library's, so that it is of interest who told it."""
    return file.startswith(_STDLIB) or any(folder in file for folder in _INSTALLED)


def _file(frame: FrameType) -> str:
    """Its name alone: where it stands differs from machine to machine."""
    return frame.f_code.co_filename.rpartition("/")[2]
