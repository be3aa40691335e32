"""The values of a JSON text with their line and column, which `json` does not tell."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from typing import Any

Path_ = tuple[str | int, ...]
Places = dict[Path_, tuple[int, int]]
_BLANK = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


class Twice(ValueError):
    """A key stands twice in one object. `place`: of the second one."""

    def __init__(self, key: str, place: tuple[int, int]) -> None:
        super().__init__(f"'{key[:60]}' stands here twice")
        self.place = place


def read(text: str) -> tuple[Any, Places, Places]:
    """The data of a text that `json` has read, and the places, from 1, of its values and of its keys. Raises Twice: an
    object has a key twice."""
    walk = _Walk(text)
    return walk.value(()), walk.marks, walk.keys


class _Walk:
    """A walk through a text that is known to be JSON."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.starts = [0, *(found.end() for found in re.finditer("\n", text))]
        self.marks: Places = {}
        self.keys: Places = {}

    def value(self, path: Path_) -> Any:
        """The value that comes next, whose path this is."""
        self._blank()
        self.marks[path] = self._place()
        match self.text[self.at]:
            case "{":
                return self._object(path)
            case "[":
                return self._array(path)
        return self._scalar()

    def _place(self) -> tuple[int, int]:
        line = bisect_right(self.starts, self.at)
        return line, self.at - self.starts[line - 1] + 1

    def _blank(self) -> None:
        found = _BLANK.match(self.text, self.at)
        assert found is not None
        self.at = found.end()

    def _more(self, end: str) -> bool:
        """Goes past a comma, and past the closing character: then it is False."""
        self._blank()
        found = self.text[self.at]
        if found in (",", end):
            self.at += 1
            self._blank()
        return found != end

    def _scalar(self) -> Any:
        found, self.at = _DECODER.raw_decode(self.text, self.at)
        return found

    def _array(self, path: Path_) -> list[Any]:
        self.at += 1
        found: list[Any] = []
        while self._more("]"):
            found.append(self.value((*path, len(found))))
        return found

    def _object(self, path: Path_) -> dict[str, Any]:
        self.at += 1
        found: dict[str, Any] = {}
        while self._more("}"):
            place = self._place()
            key = self._scalar()
            if key in found:
                raise Twice(key, place)
            self.keys[*path, key] = place
            self._blank()
            self.at += 1  # the colon
            found[key] = self.value((*path, key))
        return found
