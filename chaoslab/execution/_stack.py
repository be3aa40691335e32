"""The stack of a child process that crashed or was aborted, read through a pipe. The interpreter need not have its turn
for it: a handler of the signal in C writes it."""

from __future__ import annotations

import faulthandler
import os
import re
import select
from itertools import groupby
from pathlib import Path

SILENT_S = 2.0
"""Seconds after which a stack that does not go on is whole."""
SHOWN = 8
"""The most places of a stack that a message has, the innermost first, each once in a row."""
_PLACE = re.compile(r'^  File "(.*)", line (\d+) in (.+)$', re.MULTILINE)
_OWN = f"{Path(__file__).parents[1]}/"


class Stack:
    """The pipe, made before the fork. Each of the two processes calls its own method after it."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe()

    def of_this_process(self) -> None:
        """In the child: has a crash written into the pipe, and no file of its memory."""
        import resource

        os.close(self._read)
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        faulthandler.enable(self._write, all_threads=False)

    def of_child(self) -> None:
        """In the parent."""
        os.close(self._write)

    def places(self) -> str:
        """The stack of a child that ends, as in ": ag.py:3 in spin", with a line for each further place. Empty if the
        child wrote none."""
        poll, text = select.poll(), b""
        poll.register(self._read, select.POLLIN)
        while poll.poll(SILENT_S * 1000) and (part := os.read(self._read, 1 << 16)):
            text += part
        found = _PLACE.findall(text.decode("utf-8", "replace"))
        own = [f"{Path(file).name}:{number} in {name}" for file, number, name in found if not file.startswith(_OWN)]
        return ": " + "\n".join([place for place, _ in groupby(own)][:SHOWN]) if own else ""

    def close(self) -> None:
        os.close(self._read)
