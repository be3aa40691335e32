"""The content of a report, before it has a format: figures and tables. A figure has a value, its interval, a unit, the
number of observations and one sentence; a table has rows of values, and its columns say how people read them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from chaoslab.analysis.measures.intervals import Estimate, Interval, Rate
from chaoslab.base.durations import format_difference, format_duration
from chaoslab.reports._columns import COLUMNS, Column
from chaoslab.reports.page import format_interval, format_percent, format_rate
from chaoslab.reports.text import make_one_line

Row = Mapping[str, Any]
NONE, ALL = "–", "all"
SAID = 300
"""The most characters of a foreign text in a part."""
MANY = 40
"""The most rows of lists without a natural bound: warnings, and failures that nobody injected."""


class Figure(NamedTuple):
    """One figure. `said`: the sentence; empty if that of the figure before tells it. `value`: None without data.
    `unit`: share (0 to 1), s, USD, or what is counted. `n`: the observations behind it. `prompts`: the number of those
    that a rate is over, which are the unit of its interval."""

    name: str
    said: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    unit: str = ""
    n: int | None = None
    prompts: int | None = None

    @classmethod
    def build(
        cls,
        name: str,
        said: str,
        source: Rate | Estimate | float | None,
        interval: Interval | None = None,
        *,
        unit: str = "",
        n: int | None = None,
    ) -> "Figure":
        """A figure of a rate, an estimate or a plain value. An end of an interval that the data do not give is None."""
        prompts = None
        if isinstance(source, Rate):
            unit, n, prompts, interval, source = "share", source.total, source.prompts, source.interval, source.value
        elif isinstance(source, Estimate):
            interval, source = source.interval, source.value
        low, high = (
            # JSON has no infinity.
            (interval.low, None if interval.high == float("inf") else interval.high) if interval else (None, None)
        )
        return cls(name, said, source, low, high, unit, n, prompts)


def finite_or_none(end: float) -> float | None:
    """The end of an interval; None if the data do not give it."""
    return None if end == float("inf") else end


@dataclass(frozen=True)
class Table:
    """A table. The first `names` columns name the row, and a row for all of them has `ALL` in their place; the others
    are figures unless `words` is true: then they are a number and a text. `joint`: joins two names to one. `detail`: it
    is left out where there is little room."""

    name: str
    caption: str
    rows: Sequence[Row]
    names: int = 1
    words: bool = False
    detail: bool = False
    joint: str = " on "

    @cached_property
    def _shown_columns(self) -> list[Column]:
        return [
            column for column in COLUMNS[self.name]
            if column.head and not (column.rare and not any(row.get(column.name) for row in self.rows))
        ]  # fmt: skip

    @property
    def header(self) -> list[str]:
        """The headings of the columns that people read."""
        return [column.head for column in self._shown_columns]

    @cached_property
    def cell_texts(self) -> list[list[str]]:
        """The rows as people read them."""
        return [[format_cell(column, row) for column in self._shown_columns] for row in self.rows]


@dataclass(frozen=True)
class Section:
    """One section of a report."""

    title: str
    figures: Sequence[Figure] = ()
    tables: Sequence[Table] = ()

    @property
    def key_figure_sentences(self) -> list[str]:
        """The sentences."""
        return [figure.said for figure in self.figures if figure.said]


FORMS: dict[str, Callable[[Any, Row], str]] = {
    "words": lambda value, _: str(value).replace("_", " "),
    "share": lambda value, _: format_percent(value),
    "s": lambda value, _: format_duration(value, 2),
    # The column's heading has the unit.
    "more": lambda value, _: format_difference(value).removesuffix(" s"),
    "met": lambda value, _: "with one" if value else "without",
    "interval": lambda value, row: format_interval(Interval(value, row["high"])),
    "rate": lambda value, row: format_rate(Rate(value, row["judged"], Interval(row["low"], row["high"]))),
}
"""The words for a value, by the form of its column; another form is a format of Python's."""


def format_cell(column: Column, row: Row) -> str:
    """A value as people read it."""
    value = row.get(column.name)
    if value is None:
        return NONE
    if column.form in FORMS:
        return FORMS[column.form](value, row)
    if column.form:  # no "-0.0"
        # + 0.0, since a rounded -0.0000001 would be -0.
        return f"{round(float(value), 9) + 0.0:{'+' if row.get('added') else ''}{column.form}}"
    return f"{value:,}" if isinstance(value, int) else make_one_line(str(value), SAID)
