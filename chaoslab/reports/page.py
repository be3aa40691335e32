"""The parts of a text page: lines of at most 80 columns, tables, and figures with their intervals."""

import math
import re
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from chaoslab.analysis.measures.intervals import Estimate, Interval, Rate
from chaoslab.analysis.verdict.guard import run_guarded
from chaoslab.analysis.verdict.ledger import strip_varying_details
from chaoslab.base.durations import format_duration, format_range
from chaoslab.reports.text import shorten_names_distinctly

T = TypeVar("T")

WIDTH = 80
NAME_LEAST = 12
"""The fewest columns for a name."""
NAME_LINES = 3
"""The most lines for a name."""
ROWS = 12
"""The most rows of a table."""
WHY, NAMED = 220, 3
"""The most characters of a reason, and the most trials that are named for it."""


def wrap_text(text: str, *, indent: str = "", longest: int = 2000) -> list[str]:
    """The text in lines that fit; those after the first are indented by two more columns."""
    # Before wrapping: a text of a megabyte would be wrapped whole.
    text_in_line = " ".join(text.split())
    text_in_line = text_in_line if len(text_in_line) <= longest else text_in_line[: longest - 1] + "…"
    return textwrap.wrap(
        # A hyphen is part of names, which must stay one word.
        text_in_line,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=f"{indent}  ",
        break_on_hyphens=False,
    )


def render_or_explain(name: str, measure: Callable[[], list[str]]) -> list[str]:
    """The lines of one part of a page, or a line with the reason if its measure raises."""
    return run_guarded(measure, lambda reason: wrap_text(f"{name}: unknown ({reason})"))


def render_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A table with columns as wide as their widest entry. The first column, of names, is left-aligned, and a name for
    which there is no room goes on in the lines below, as the heads of the other columns do then; those are
    right-aligned. Columns for which there is no room follow in a second table."""
    widths = [max(len(row[n]) for row in [header, *rows]) for n in range(len(header))]
    if sum(widths) + 2 * (len(widths) - 1) > WIDTH:
        # First the heads of the columns give way: the figures must not.
        longest_words = [max(map(len, name.split()), default=0) for name in header]
        widths[1:] = [max(longest_words[n], *(len(row[n]) for row in rows), 0) for n in range(1, len(header))]
    columns_fitting = len(widths)
    # Two columns at least, or a table would never end.
    while columns_fitting > 2 and NAME_LEAST + sum(widths[1:columns_fitting]) + 2 * (columns_fitting - 1) > WIDTH:
        columns_fitting -= 1
    widths = widths[:columns_fitting]
    widths[0] = min(widths[0], max(NAME_LEAST, WIDTH - sum(widths[1:]) - 2 * (columns_fitting - 1)))
    heads = [
        textwrap.wrap(name, max(width, 1), break_long_words=False) for name, width in zip(header, widths, strict=False)
    ]
    head_height = max(map(len, heads[1:]), default=1)
    head_rows = [
        [([""] * (head_height - len(head_lines)) + head_lines)[n] for head_lines in heads[1:]]
        for n in range(head_height)
    ]
    names = _shorten_long_words([row[0] for row in rows], widths[0])
    lines = []
    for row in [
        *(["", *head_lines] for head_lines in head_rows[:-1]),
        [header[0], *(head_rows or [[]])[-1]],
        *(row[:columns_fitting] for row in rows),
    ]:
        name, *name_lines = _wrap_name(names.get(row[0], row[0]), widths[0])
        lines.append("  ".join([name.ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip())
        lines += name_lines
    # The rest as a table of its own, with the names again.
    remaining = [[row[0], *row[columns_fitting:]] for row in (header, *rows)]
    return lines + (render_table(remaining[0], remaining[1:]) if remaining[0][1:] else [])


def _shorten_long_words(names: Sequence[str], width: int) -> dict[str, str]:
    """The names with a word for which there is no room. Of several such words, each is cut where it differs."""
    room_by_name = {name: width - len(_continuation_indent(name)) for name in names if len(name) > width}
    long_words = sorted({word for name, room in room_by_name.items() for word in name.split() if len(word) > room})
    # One word alone is cut at its end without being mistaken for another.
    if len(long_words) < 2:
        return {}
    short = shorten_names_distinctly(long_words, min(room_by_name.values()))
    return {name: re.sub(r"\S+", lambda word: short.get(word[0], word[0]), name) for name in room_by_name}


def _continuation_indent(name: str) -> str:
    """The indentation of a name's further lines."""
    return " " * (len(name) - len(name.lstrip()) + 4)


def _wrap_name(name: str, width: int) -> list[str]:
    """The name in at most `NAME_LINES` lines. A word without room, and what is left after the last line, are cut."""
    lines = textwrap.wrap(
        name, width, subsequent_indent=_continuation_indent(name), break_long_words=False, break_on_hyphens=False
    )
    if len(lines) > NAME_LINES:
        lines = [*lines[: NAME_LINES - 1], f"{lines[NAME_LINES - 1]} …"]
    return [line if len(line) <= width else line[: width - 1] + "…" for line in lines or [name]]


def format_percent(value: float) -> str:
    """A share as text. Only none is 0%, and only all are 100%."""
    # Said of nothing but none and all.
    return "<1%" if 0 < value < 0.005 else ">99%" if 0.995 <= value < 1 else f"{value:.0%}"


def format_rate_in_percent(rate: Rate) -> str:
    """A rate as text: 66% with its interval."""
    scope = f" over prompts like these {rate.prompts}" if rate.prompts > 1 else ""
    return f"{format_percent(rate.value)}, 95 % interval {format_interval(rate.interval)}{scope}"


def format_rate(rate: Rate) -> str:
    """A rate as text: 3/12 (25%, 9–53%)."""
    return f"{rate.count}/{rate.total} ({format_percent(rate.value)}, {format_interval(rate.interval)})"


def format_interval(interval: Interval) -> str:
    return f"{interval.low:.0%}–{interval.high:.0%}"


def format_seconds(estimate: Estimate) -> str:
    """A duration with its interval, if the data give one; an interval without a width is left out."""
    low, high = estimate.interval.low, estimate.interval.high
    value, low_text = format_duration(estimate.value, 2), format_duration(low, 2)
    # Kaplan-Meier's interval may have no upper end.
    if math.isinf(high):
        return f"{value} (95 % interval from {low_text} on, not bounded by the data)"
    return value if low_text == format_duration(high, 2) else f"{value} (95 % interval {format_range(low, high)})"


def format_usd(amount: float) -> str:
    """A cost as text, to a millionth: 0 USD, 0.000697 USD."""
    return f"{round(amount, 6):.10g} USD"


def format_count(number: int, singular: str, plural: str = "") -> str:
    """A number with its noun: 1 prompt, 2 prompts, 12,000 prompts."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def group_alike_texts(texts: Iterable[tuple[str, str]]) -> list[tuple[str, list[str]]]:
    """The texts, each with its trials, most frequent first. Those that differ only in the places of the evidence are
    one, told as of its first trial."""
    groups: dict[str, tuple[str, list[str]]] = {}
    for text, trial in texts:
        groups.setdefault(strip_varying_details(text), (text, []))[1].append(trial)
    return sorted(groups.values(), key=lambda item: -len(item[1]))


@dataclass(frozen=True)
class ListBounds:
    """The bounds of a page's lists. `whole`: the command that shows the page without them; empty if this one does."""

    whole: str = ""

    def take_first(self, items: Sequence[T], items_max: int) -> Sequence[T]:
        """The first of them, or all if nothing is left out."""
        return items[:items_max] if self.whole else items

    def render_more_line(self, hidden_count: int, kind: str = "") -> list[str]:
        """A line that says how many are not shown, and which command shows them; none if all are. `kind`: their
        kind."""
        return (
            [f"  … and {hidden_count} more{f' {kind}' if kind else ''}: {self.whole}"]
            if self.whole and hidden_count > 0
            else []
        )

    def render_table(self, header: Sequence[str], groups: Sequence[Sequence[Sequence[str]]]) -> list[str]:
        """A table of groups of rows: the first of a group stands for all of it, and the others are its parts. If there
        are too many rows, the parts of the last groups are left out, and then the last groups. A single row is never
        left out: the line that says so would take as much room."""
        row_count = sum(map(len, groups))
        rows_max = row_count if row_count == ROWS + 1 else ROWS
        shown_groups = [[group[0]] for group in self.take_first(groups, rows_max)]
        room = rows_max - len(shown_groups)
        for shown_group, (_, *parts) in zip(shown_groups, groups, strict=False):
            shown_group += self.take_first(parts, room)
            room -= len(shown_group) - 1
        rows = [row for group in shown_groups for row in group]
        return [*render_table(header, rows), *self.render_more_line(row_count - len(rows), "rows")]
