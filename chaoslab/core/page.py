"""A page of a list that goes on."""

from collections.abc import Iterable
from typing import Any


class Page(list[Any]):
    """The entries of a page. `cursor`: the place by which its reader asks for the next one."""

    def __init__(self, entries: Iterable[Any], cursor: str) -> None:
        super().__init__(entries)
        self.cursor = cursor
