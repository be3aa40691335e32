"""The line and column of each value in a TOML text, which `tomllib` does not tell."""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right
from collections.abc import Mapping
from typing import Any

Path_ = tuple[str | int, ...]
Places = dict[Path_, tuple[int, int]]
_BLANK = re.compile(r"(?:[ \t\r\n,]|#[^\n]*)*")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_BARE_VALUE = re.compile(r"[^,\]}#\r\n]+")
_STRING = re.compile(
    r'"""(?:\\.|[^\\])*?"""(?!")|' r"'''.*?'''(?!')|" r'"(?:\\.|[^"\\\n])*"|' r"'[^'\n]*'",
    re.DOTALL,
)


_LINE = re.compile(r"""[ \t]*(\[{0,2})[ \t]*([A-Za-z0-9_-]+|"[^"\\]*"|'[^']*')[ \t]*(?:=|\])""")


class Unknown(Exception):
    """A form of TOML that this does not know, or no TOML."""


class TooDeep(Exception):
    """A value lies deeper than wanted. `place`: where the way to it begins, or goes on too far."""

    def __init__(self, place: tuple[int, int]) -> None:
        super().__init__()
        self.place = place


def places(text: str, *, depth_max: int) -> tuple[Places, Places]:
    """The places, from 1, of the values and of the keys of a TOML text.

    Raises:
        TooDeep: a value lies more than `depth_max` deep. Unknown: something was found that is not known.
    """
    scan = _Scan(text, depth_max)
    try:
        scan.document()
    except (IndexError, tomllib.TOMLDecodeError) as error:
        raise Unknown from error
    return scan.marks, scan.keys


def lines(text: str, data: Mapping[str, Any]) -> tuple[Places, Places]:
    """The lines of the keys that begin one, of tables and in them, with a column of 0. `data`: of the text."""
    found: Places = {}
    table: Path_ = ()
    entries: dict[str, int] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if (match := _LINE.match(line)) is None:
            continue
        name = match[2].strip("\"'")
        if match[1] == "[[":
            entries[name] = entries.get(name, -1) + 1
            found.setdefault((name,), (number, 0))
            table = (name, entries[name])
        elif match[1]:
            table = (name,)
        path = table if match[1] else (*table, name)
        if _there(data, path):
            found.setdefault(path, (number, 0))
    return found, found


def _there(data: Any, path: Path_) -> bool:
    for part in path:
        try:
            data = data[part]
        except (LookupError, TypeError):
            return False
    return True


class _Scan:
    """A walk through a text: it only looks for where things begin."""

    def __init__(self, text: str, depth_max: int) -> None:
        self.text, self.at, self.depth_max = text, 0, depth_max
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
            raise Unknown
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
            if len(found) > self.depth_max:
                raise TooDeep(found[0][1])
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
        if len(path) > self.depth_max:
            raise TooDeep(self.marks[path])
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
