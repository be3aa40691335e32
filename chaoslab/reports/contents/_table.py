"""The parts of a report: sentences and tables, before they have a format."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

T_ = TypeVar("T_")

NONE, ALL = "–", "all"
SAID = 300
"""The most characters of a foreign text in a part."""
MANY = 40
"""The most rows of lists without a natural bound: warnings, and failures that nobody injected."""


@dataclass(frozen=True)
class Table:
    """A table. The first `names` columns name the row, and a row for all of them has `ALL` in their place; the others
    are figures unless `words` is true: then the columns are a name, a number and a text. `joint`: joins two names to
    one. `detail`: it is left out where there is little room."""

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    names: int = 1
    words: bool = False
    detail: bool = False
    joint: str = " on "

    def without(self, *rare: str) -> Table:
        """The table without those of these columns that are empty, or 0, in each row."""
        kept = [
            n
            for n, name in enumerate(self.header)
            if name not in rare or any(row[n] not in ("0", NONE) for row in self.rows)
        ]
        header, *rows = ([row[n] for n in kept] for row in (self.header, *self.rows))
        return replace(self, header=header, rows=rows)


@dataclass(frozen=True)
class Section:
    """One section of a report. `lines`: sentences before its tables."""

    title: str
    lines: Sequence[str] = ()
    tables: Sequence[Table] = field(default_factory=tuple)


def each_place(
    by_fault: Mapping[str, T_], by_place: Mapping[tuple[str, str], T_]
) -> Iterator[tuple[tuple[str, str], T_]]:
    """Each fault over all its targets, if there are several, and then at each of them, in the orders that they have."""
    for fault, every in by_fault.items():
        mine = [(place, of) for place, of in by_place.items() if place[0] == fault]
        if len(mine) > 1:
            yield (fault, ALL), every
        yield from mine
