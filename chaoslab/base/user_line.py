"""The line of the user's own source at which something is done, for whoever is to find it there."""

import os
import sys
import sysconfig
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import NamedTuple

_LIBRARIES = (
    f"{Path(__file__).resolve().parents[1]}{os.sep}",
    *{sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib")},
)
_INSTALLED = tuple(f"{os.sep}{name}{os.sep}" for name in ("site-packages", "dist-packages"))


class Raised(NamedTuple):
    """The innermost line of the user's that an exception passed. `own`: that line raised it itself."""

    line: str = ""
    own: bool = False


@cache
def _format_user_path(file: str) -> str:
    """The file as it is shown; empty for a file of a library or of the lab."""
    # "<" begins the name of code that has no file, as that of exec.
    if file.startswith("<") or file.startswith(_LIBRARIES) or any(folder in file for folder in _INSTALLED):
        return ""
    inside = os.path.relpath(file)
    return file if inside.startswith("..") else inside


def is_trampoline(code: CodeType) -> bool:
    """Tells if this is the code of a function that the lab has swapped, whose caller is the one to name."""
    return code.co_varnames[2:3] == ("stand_in_of_the_lab",)


def find_user_line(frame: FrameType | None = None) -> str:
    """The innermost line of the user's files that is under way, as in "shop.py:31"; empty if there is none."""
    frame = frame or sys._getframe(1)
    while frame is not None:
        # The file first: most frames are a library's, and a code's names are a new tuple each time.
        if (file := _format_user_path(frame.f_code.co_filename)) and not is_trampoline(frame.f_code):
            return f"{file}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


def find_function_line(function: object) -> str:
    """The line at which a function of the user's begins; empty if it is none."""
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    file = _format_user_path(code.co_filename) if isinstance(code, CodeType) else ""
    return f"{file}:{code.co_firstlineno}" if code is not None and file else ""


def find_raised_line(error: BaseException) -> Raised:
    """The innermost line of the user's that an exception passed."""
    place_raised, trace = Raised(), error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if (file := _format_user_path(code.co_filename)) and not is_trampoline(code):
            place_raised = Raised(f"{file}:{trace.tb_lineno}", own=True)
        elif place_raised.own:
            place_raised = Raised(place_raised.line)
        trace = trace.tb_next
    return place_raised
