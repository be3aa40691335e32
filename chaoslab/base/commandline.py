"""A command line whose mistakes are said in one line, in the same words by every door of the lab."""

from __future__ import annotations

import argparse
import codecs
import contextlib
import io
import os
import sys
from collections import namedtuple
from collections.abc import Callable
from typing import NoReturn, TextIO

from chaoslab.base import parsers

RUN_HELP = (
    "a run: its name or the beginning of it, its folder, latest, or latest~1 for the one before (default: latest)"
)
"""What every command says that takes a run."""
GATE_FAILED, LAB_DOWN, INTERRUPTED = 1, 3, 130
"""Exit codes of whatever runs a lab, beside 0 and 2. 1: the run came to its end, and is not what --min-correct or --fail-on asked for."""


def interrupted() -> int:
    """The exit code of who was interrupted and has wound up, which Python would else replace by a death of the signal.

    Where an interrupt comes through the execution of a text (a namedtuple is made so, as many modules do while they are imported), CPython
    notes that nobody handled it, and `python -m` goes by that note in the end, handled or not. The next text clears it.
    """
    namedtuple("Handled", ())
    return INTERRUPTED


def refuse(error: Exception, *, code: int = 2) -> int:
    """One line, and the exit code."""
    said = error.args[0] if error.args else error
    if isinstance(error, OSError) and error.args:
        said = f"{error.filename}: {error.strerror}" if error.filename else error.args[-1]
    with contextlib.suppress(OSError):
        print(said, file=sys.stderr)
    return code


def open_streams() -> None:
    """For a program of its own, before it says anything: nothing that it prints can fail for want of a sign or of a reader.

    A sign that the terminal's encoding lacks is told by the nearest that it has. What is written to a pipe whose reader is gone, or to a
    stream that was closed before the program began, is written nowhere.
    """
    with contextlib.suppress(OSError):
        for number in range(3):  # else the next file that is opened would be this stream's
            if not _is_open(number):
                os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    sys.stdout, sys.stderr = _stream(sys.stdout), _stream(sys.stderr)


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def _stream(stream: TextIO | None) -> TextIO:
    if stream is None:
        return open(os.devnull, "w", encoding="utf-8")
    if not isinstance(stream, io.TextIOWrapper) or isinstance(stream, _Stream):
        return stream
    encoding, by_line, at_once = stream.encoding, stream.line_buffering, stream.write_through
    return _Stream(stream.detach(), encoding, NEAREST, line_buffering=by_line, write_through=at_once)


class _Stream(io.TextIOWrapper):
    """Text for somebody who may have gone: `chaoslab show | head -1` ends as it would without a reader."""

    def write(self, text: str) -> int:
        try:
            return super().write(text)
        except BrokenPipeError:
            self._to_nowhere()
            return len(text)

    def flush(self) -> None:
        try:
            super().flush()
        except BrokenPipeError:
            self._to_nowhere()

    def _to_nowhere(self) -> None:
        """What is still held goes there too."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.fileno())
        os.close(nowhere)


NEAREST = "chaoslab.nearest"
_NEAREST = {
    "–": "-",
    "·": "|",
    "→": "->",
    "…": "...",
    "×": "x",
    "≥": ">=",
    "≤": "<=",
    "±": "+-",
    "’": "'",
    "“": '"',
    "”": '"',
}


def _nearest(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(_NEAREST.get(sign, "?") for sign in error.object[error.start : error.end]), error.end


codecs.register_error(NEAREST, _nearest)


class Parser(argparse.ArgumentParser):
    """argparse without the usage that would bury what was wrong; `--help` still has it."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}; see {self.prog} --help\n")


def whole(low: int, high: int) -> Callable[[str], int]:
    """The type of an argument that is a whole number within bounds, for `add_argument(type=…)`."""

    def parse(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = low - 1
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"{text[:60]} should be a whole number from {low} to {high}")
        return value

    return parse


def host(text: str) -> str:
    """The type of an argument that is a host; `{service}` in it stands for the name of one."""
    try:
        parsers.host(text.replace("{service}", "service"))
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text[:60]!r} should be {error}") from None
    return text


port = whole(0, 65535)
"""0: any that is free."""
