"""Which world this thread of the process is in, if any; and what is said of what no world can carry."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING

from chaoslab.worlds.virtual.standing import PLUMBING

if TYPE_CHECKING:
    from chaoslab.worlds.virtual.world import World


class _Here(threading.local):
    world: World | None = None


here = _Here()


def world() -> World:
    """The world of this thread."""
    found = here.world
    if found is None:
        raise RuntimeError("no virtual world runs in this thread")
    return found


class Uncovered(BaseException):
    """The program did something real that virtual time cannot stand for: says what, where, and what to do.

    No `Exception`, since an agent would take it for one more failure and go on; and whoever raises it remembers it in the world.
    """

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(f"{what}{caller()} is not covered by virtual time: {remedy}, or run in the local world")
        if here.world is not None and here.world.uncovered is None:
            here.world.uncovered = self


def caller() -> str:
    """ ", in my_agent.py line 12 (book)": the innermost frame that is neither ours nor a library's plumbing."""
    frame = sys._getframe(1)
    while frame.f_back is not None:
        if not str(frame.f_globals.get("__name__", "")).startswith(PLUMBING):
            break
        frame = frame.f_back
    code = frame.f_code
    file = code.co_filename.rpartition("/")[2]
    return f" (in {file}, line {frame.f_lineno}, {code.co_name})"
