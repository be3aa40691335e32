"""What all pictures share: a title, a line that says what is seen, scales, and words that fit. palette.py has the colours."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from chaoslab.events import FaultWitnessed
from chaoslab.history import History

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.ticker import Locator

T_ = TypeVar("T_")

NOTE_WIDTH = 80
"""Signs in a line under the title: what fits beside long labels on the left."""
WIDE = 30
"""Positive values that span more than this factor are drawn on a logarithmic axis."""
DECADES = 6
"""A logarithmic axis shows so many at most."""
TICKS = 7
POINTS = 4000
"""A group of more points is thinned: more of them would only take longer, and lie over each other."""


def canvas(title: str, note: str = "", *, height_in: float = 4.2) -> tuple[Figure, Axes]:
    """An empty picture; `note` is the line under its title."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.4, height_in), layout="constrained")
    figure.suptitle(title, x=0.012, ha="left", fontsize=13, fontweight="bold")
    axes = figure.add_subplot()
    axes.set_title(textwrap.fill(note, NOTE_WIDTH), loc="left", fontsize=9, color="#444444")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="#E3E3E3", linewidth=0.7)
    axes.set_axisbelow(True)
    return figure, axes


def nothing(axes: Axes, message: str) -> None:
    """Says on the picture that there is nothing to see, in place of empty axes."""
    axes.set_title("", loc="left")
    axes.set_axis_off()
    said = textwrap.fill(message, NOTE_WIDTH)
    axes.text(0.5, 0.5, said, transform=axes.transAxes, ha="center", va="center", fontsize=12, color="#444444")


def unmet(history: History) -> str:
    """What to say where no witnessed fault is to be seen."""
    told = history.tells(FaultWitnessed)
    return "no faults were witnessed in this run" if told else "which faults were met is not known from such a log"


def legend(figure: Figure, axes: Axes) -> None:
    """Below the picture, so that it hides no data; a long one makes the picture higher."""
    handles, labels = axes.get_legend_handles_labels()
    if handles:
        longest = max(map(len, labels))
        columns = min(4 if longest < 28 else 2 if longest < 60 else 1, len(handles))
        rows = math.ceil(len(handles) / columns)
        figure.set_figheight(figure.get_figheight() + 0.2 * max(0, rows - 2))
        figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False, fontsize=9)


@dataclass(frozen=True)
class Scale:
    """An axis of durations. `edge`: where a duration of 0, or one that is not told, is drawn; `low`: the smallest that has a place of its own."""

    suffix: str
    low: float
    edge: float

    def place(self, value: float) -> float:
        """Where a duration is drawn."""
        return max(value, self.low) if value > 0 else self.edge

    def places(self, values: Iterable[float]) -> list[float]:
        return [self.place(value) for value in values]


def scale(axes: Axes, values: Sequence[float], *, axis: str) -> Scale:
    """A logarithmic axis where the values span much, else a linear one from 0. Values of 0 and untold ones (NaN) get the axis's edge, and it says
    which of them are there. `suffix` is what to add to the axis's label."""
    positive = [value for value in values if value > 0]
    zero, untold = 0.0 in values, any(map(math.isnan, values))
    words = "0 or\nnot told" if zero and untold else "0" if zero else "not told"
    which, across, limits = (
        (axes.xaxis, axes.axvline, axes.set_xlim) if axis == "x" else (axes.yaxis, axes.axhline, axes.set_ylim)
    )
    if len(positive) < 2 or max(positive) / min(positive) <= WIDE:
        top = max(positive, default=1.0)
        edge = -0.1 * top if untold else 0.0
        limits(edge - 0.03 * top if zero or untold else 0, top * 1.08)
        if untold:
            ticks = [tick for tick in which.get_major_locator().tick_values(0, top) if 0 <= tick <= top * 1.08]
            which.set_ticks([edge, *ticks], [words, *(f"{tick:g}" for tick in ticks)])
        return Scale("", 0.0, edge)
    (axes.set_xscale if axis == "x" else axes.set_yscale)("log")
    low, high = max(min(positive), max(positive) / 10**DECADES), max(positive)
    marked = zero or untold
    edge = low / max(3.0, (high / low) ** 0.1) if marked else low
    limits(edge / 1.6, high * 1.6)
    first, last = math.ceil(math.log10(low / 1.6)), math.floor(math.log10(high * 1.6))
    decades = range(first, last + 1, math.ceil((last - first + 1) / TICKS))
    which.set_ticks([*([edge] if marked else []), *(10.0**n for n in decades)])
    which.set_ticklabels([*([words] if marked else []), *(f"{10.0**n:g}" for n in decades)])
    which.set_minor_locator(_within(low))
    which.set_minor_formatter(lambda *_: "")
    if marked:  # what is below this line has no place on a logarithmic axis
        across(math.sqrt(edge * low), color="#B8B8B8", linewidth=0.8, linestyle=":", zorder=0.5)
    return Scale(", logarithmic", low, edge)


def _within(low: float) -> Locator:
    """The small ticks of a logarithmic axis, but for those below its smallest value."""
    from matplotlib.ticker import LogLocator

    class Within(LogLocator):
        def __call__(self) -> Sequence[float]:
            return [tick for tick in super().__call__() if tick >= low / 1.6]

    return Within(subs="auto")


def thin(found: Sequence[T_]) -> tuple[Sequence[T_], str]:
    """At most POINTS of them, evenly over their order, and what to say of it."""
    step = math.ceil(len(found) / POINTS)
    return (found, "") if step <= 1 else (found[::step], f", every {ordinal(step)} drawn")


def ordinal(number: int) -> str:
    """2nd, 3rd, 4th."""
    last = number % 10 if number // 10 % 10 != 1 else 0
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(last, 'th') }"


def short(text: str, width: int = 26) -> str:
    """The text in one line of at most `width` signs."""
    line = " ".join(text.split())
    if len(line) > width:
        tail = width // 3  # names of one family differ at their end
        line = f"{line[: width - tail - 1]}…{line[-tail:]}"
    return line.replace("$", r"\$")


def counted(number: int, word: str) -> str:
    """1 prompt, 2 prompts, 12,000 prompts."""
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def spread(count: int) -> list[float]:
    """Offsets in ±0.22 that keep points of one row apart, the same each time (golden ratio steps)."""
    return [((n * 0.618033988749895) % 1 - 0.5) * 0.44 for n in range(count)]
