"""The line and column of each value in a TOML text, which `tomllib` does not tell."""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right
from contextlib import suppress

Path_ = tuple[str | int, ...]
Places = dict[Path_, tuple[int, int]]
_BLANK = re.compile(r"(?:[ \t\r\n,]|#[^\n]*)*")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_BARE_VALUE = re.compile(r"[^,\]}#\r\n]+")
_STRING = re.compile(
    r'"""(?:\\.|[^\\])*?"""(?!")|' r"'''.*?'''(?!')|" r'"(?:\\.|[^"\\\n])*"|' r"'[^'\n]*'",
    re.DOTALL,
)


class _Unknown(Exception):
    """The text has something that the scan does not know."""


def places(text: str) -> tuple[Places, Places]:
    """The places, from 1, of the values and of the keys of a text that `tomllib` has read; those before the first thing
    that is not known here."""
    scan = _Scan(text)
    with suppress(_Unknown, IndexError):
        scan.document()
    return scan.marks, scan.keys


class _Scan:
    """A walk through a text whose grammar is known to be right: it only looks for where things begin."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.starts = [0, *(found.end() for found in re.finditer("\n", text))]
        self.marks: Places = {(): (1, 1)}
        self.keys: Places = {}
        self.tables: dict[Path_, int] = {}
        """The number of entries of each list of tables so far."""

    def document(self) -> None:
        """Goes through all tables and pairs."""
        table: Path_ = ()
        while self._more(""):
            if self.text[self.at] == "[":
                table = self._header()
            else:
                self._pair(table)

    def _place(self) -> tuple[int, int]:
        line = bisect_right(self.starts, self.at)
        return line, self.at - self.starts[line - 1] + 1

    def _more(self, end: str) -> bool:
        """Skips what is blank; False at the end, or behind the closing character."""
        self.at = self._past(_BLANK)
        if end and self.text.startswith(end, self.at):
            self.at += 1
            return False
        return self.at < len(self.text)

    def _past(self, pattern: re.Pattern[str]) -> int:
        found = pattern.match(self.text, self.at)
        if found is None:
            raise _Unknown
        return found.end()

    def _header(self) -> Path_:
        listed = self.text.startswith("[[", self.at)
        self.at += 2 if listed else 1
        path: Path_ = ()
        names = self._names()
        for n, (name, place) in enumerate(names):
            path = (*path, name)
            self._note(path, place)
            if listed and n == len(names) - 1:
                self.tables[path] = self.tables.get(path, 0) + 1
            if path in self.tables:
                path = (*path, self.tables[path] - 1)
                self.marks.setdefault(path, place)
        self.at += 2 if listed else 1
        return path

    def _names(self) -> list[tuple[str, tuple[int, int]]]:
        """The parts of a dotted key, each with its place."""
        found = []
        while True:
            self._spaces()
            begin, place = self.at, self._place()
            quoted = self.text[begin] in "\"'"
            self.at = self._past(_STRING if quoted else _BARE_KEY)
            name = self.text[begin : self.at]
            found.append((str(tomllib.loads(f"k = {name}")["k"]) if quoted else name, place))
            self._spaces()
            if not self.text.startswith(".", self.at):
                return found
            self.at += 1

    def _spaces(self) -> None:
        while self.text[self.at] in " \t":
            self.at += 1

    def _note(self, path: Path_, place: tuple[int, int]) -> None:
        self.keys.setdefault(path, place)
        self.marks.setdefault(path, place)

    def _pair(self, table: Path_) -> None:
        path = table
        for name, place in self._names():
            path = (*path, name)
            self._note(path, place)
        self.at += 1  # the sign =
        self._spaces()
        self._value(path)

    def _value(self, path: Path_) -> None:
        self.marks[path] = self._place()
        first = self.text[self.at]
        if first == "[":
            self.at += 1
            number = 0
            while self._more("]"):
                self._value((*path, number))
                number += 1
        elif first == "{":
            self.at += 1
            while self._more("}"):
                self._pair(path)
        else:
            self.at = self._past(_STRING if first in "\"'" else _BARE_VALUE)
