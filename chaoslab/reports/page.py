"""The parts of a text page: lines of at most 80 columns, tables, and figures with their intervals."""

import math
import re
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from chaoslab.analysis.measures.intervals import Estimate, Interval, Rate
from chaoslab.analysis.verdict.guard import guarded
from chaoslab.analysis.verdict.ledger import anywhere
from chaoslab.base.durations import between, duration
from chaoslab.reports.text import apart

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


def wrapped(text: str, *, indent: str = "", longest: int = 2000) -> list[str]:
    """The text in lines that fit; those after the first are indented by two more columns."""
    words = " ".join(text.split())
    words = words if len(words) <= longest else words[: longest - 1] + "…"
    return textwrap.wrap(words, WIDTH, initial_indent=indent, subsequent_indent=f"{indent}  ", break_on_hyphens=False)


def section(name: str, measure: Callable[[], list[str]]) -> list[str]:
    """The lines of one part of a page, or a line with the reason if its measure raises."""
    return guarded(measure, lambda why: wrapped(f"{name}: unknown ({why})"))


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A table with columns as wide as their widest entry. The first column, of names, is left-aligned, and a name for
    which there is no room goes on in the lines below, as the heads of the other columns do then; those are
    right-aligned. Columns for which there is no room follow in a second table."""
    widths = [max(len(row[n]) for row in [header, *rows]) for n in range(len(header))]
    if sum(widths) + 2 * (len(widths) - 1) > WIDTH:
        words = [max(map(len, name.split()), default=0) for name in header]
        widths[1:] = [max(words[n], *(len(row[n]) for row in rows), 0) for n in range(1, len(header))]
    fit = len(widths)
    while fit > 2 and NAME_LEAST + sum(widths[1:fit]) + 2 * (fit - 1) > WIDTH:
        fit -= 1
    widths = widths[:fit]
    widths[0] = min(widths[0], max(NAME_LEAST, WIDTH - sum(widths[1:]) - 2 * (fit - 1)))
    heads = [
        textwrap.wrap(name, max(width, 1), break_long_words=False) for name, width in zip(header, widths, strict=False)
    ]
    deep = max(map(len, heads[1:]), default=1)
    top = [[([""] * (deep - len(each)) + each)[n] for each in heads[1:]] for n in range(deep)]
    names = _told_apart([row[0] for row in rows], widths[0])
    lines = []
    for row in [*(["", *each] for each in top[:-1]), [header[0], *(top or [[]])[-1]], *(row[:fit] for row in rows)]:
        name, *more = _in_lines(names.get(row[0], row[0]), widths[0])
        lines.append("  ".join([name.ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip())
        lines += more
    left = [[row[0], *row[fit:]] for row in (header, *rows)]
    return lines + (table(left[0], left[1:]) if left[0][1:] else [])


def _told_apart(names: Sequence[str], width: int) -> dict[str, str]:
    """The names with a word for which there is no room. Of several such words, each is cut where it differs."""
    wide = {name: width - len(_below(name)) for name in names if len(name) > width}
    words = sorted({word for name, room in wide.items() for word in name.split() if len(word) > room})
    if len(words) < 2:
        return {}
    short = apart(words, min(wide.values()))
    return {name: re.sub(r"\S+", lambda word: short.get(word[0], word[0]), name) for name in wide}


def _below(name: str) -> str:
    """The indentation of a name's further lines."""
    return " " * (len(name) - len(name.lstrip()) + 4)


def _in_lines(name: str, width: int) -> list[str]:
    """The name in at most `NAME_LINES` lines. A word without room, and what is left after the last line, are cut."""
    lines = textwrap.wrap(name, width, subsequent_indent=_below(name), break_long_words=False, break_on_hyphens=False)
    if len(lines) > NAME_LINES:
        lines = [*lines[: NAME_LINES - 1], f"{lines[NAME_LINES - 1]} …"]
    return [line if len(line) <= width else line[: width - 1] + "…" for line in lines or [name]]


def percent(value: float) -> str:
    """A share as text. Only none is 0%, and only all are 100%."""
    return "<1%" if 0 < value < 0.005 else ">99%" if 0.995 <= value < 1 else f"{value:.0%}"


def share(rate: Rate) -> str:
    """A rate as text: 66% with its interval."""
    over = f" over prompts like these {rate.prompts}" if rate.prompts > 1 else ""
    return f"{percent(rate.value)}, 95 % interval {percents(rate.interval)}{over}"


def rate_text(rate: Rate | None) -> str:
    """A rate as text: 3/12 (25%, 9–53%)."""
    return "–" if rate is None else f"{rate.count}/{rate.total} ({percent(rate.value)}, {percents(rate.interval)})"


def percents(interval: Interval) -> str:
    return f"{interval.low:.0%}–{interval.high:.0%}"


def seconds(estimate: Estimate) -> str:
    """A duration with its interval, if the data give one; an interval without a width is left out."""
    low, high = estimate.interval.low, estimate.interval.high
    value, least = duration(estimate.value, 2), duration(low, 2)
    if math.isinf(high):
        return f"{value} (95 % interval from {least} on, not bounded by the data)"
    return value if least == duration(high, 2) else f"{value} (95 % interval {between(low, high)})"


def usd(amount: float) -> str:
    """A cost as text, to a millionth: 0 USD, 0.000697 USD."""
    return f"{round(amount, 6):.10g} USD"


def count(number: int, one: str, many: str = "") -> str:
    """A number with its noun: 1 prompt, 2 prompts, 12,000 prompts."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def alike(told: Iterable[tuple[str, str]]) -> list[tuple[str, list[str]]]:
    """The texts, each with its trials, most frequent first. Those that differ only in the places of the evidence are
    one, told as of its first trial."""
    found: dict[str, tuple[str, list[str]]] = {}
    for what, trial in told:
        found.setdefault(anywhere(what), (what, []))[1].append(trial)
    return sorted(found.values(), key=lambda item: -len(item[1]))


@dataclass(frozen=True)
class ListBounds:
    """The bounds of a page's lists. `whole`: the command that shows the page without them; empty if this one does."""

    whole: str = ""

    def shown(self, found: Sequence[T], most: int) -> Sequence[T]:
        """The first of them, or all if nothing is left out."""
        return found[:most] if self.whole else found

    def more(self, left: int, of: str = "") -> list[str]:
        """A line that says how many are not shown, and which command shows them; none if all are. `of`: their kind."""
        return [f"  … and {left} more{f' {of}' if of else ''}: {self.whole}"] if self.whole and left > 0 else []

    def table(self, header: Sequence[str], groups: Sequence[Sequence[Sequence[str]]]) -> list[str]:
        """A table of groups of rows: the first of a group stands for all of it, and the others are its parts. If there
        are too many rows, the parts of the last groups are left out, and then the last groups. A single row is never
        left out: the line that says so would take as much room."""
        every = sum(map(len, groups))
        most = every if every == ROWS + 1 else ROWS
        kept = [[group[0]] for group in self.shown(groups, most)]
        room = most - len(kept)
        for shown, (_, *parts) in zip(kept, groups, strict=False):
            shown += self.shown(parts, room)
            room -= len(shown) - 1
        rows = [row for group in kept for row in group]
        return [*table(header, rows), *self.more(every - len(rows), "rows")]
