"""A command line whose mistakes are said in one line, in the same words by every door of the lab."""

from __future__ import annotations

import argparse
from collections import namedtuple
from collections.abc import Callable
from typing import NoReturn

GATE_FAILED, LAB_DOWN, INTERRUPTED = 1, 3, 130
"""Exit codes of whatever runs a lab, beside 0 and 2. 1: the run came to its end, and is not what --min-correct or --fail-on asked for."""


def interrupted() -> int:
    """The exit code of who was interrupted and has wound up, which Python would else replace by a death of the signal.

    Where an interrupt comes through the execution of a text (a namedtuple is made so, as many modules do while they are imported), CPython
    notes that nobody handled it, and `python -m` goes by that note in the end, handled or not. The next text clears it.
    """
    namedtuple("Handled", ())
    return INTERRUPTED


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


port = whole(0, 65535)
"""0: any that is free."""
