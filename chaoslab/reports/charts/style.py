"""What all pictures share: colours that colour-blind people tell apart, a title, and a line that says what is seen."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from chaoslab.events import FaultWitnessed
from chaoslab.history import History

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
YELLOW, BLUE, VERMILION, PURPLE = "#F0E442", "#0072B2", "#D55E00", "#CC79A7"
GREY = "#8C8C8C"
"""Okabe and Ito's palette, and a grey."""

CYCLE = (ORANGE, BLUE, VERMILION, GREEN, PURPLE, SKY, BLACK)
MARKERS = "osD^vPX"
OUTCOMES = {
    "correct": (GREEN, "o"),
    "degraded": (SKY, "s"),
    "wrong": (BLUE, "h"),
    "harm": (VERMILION, "X"),
    "failed": (BLACK, "v"),
    "hung": (ORANGE, "*"),
    "unknown": (GREY, "D"),
    "invalid": (PURPLE, "P"),
    "unfinished": (YELLOW, "^"),
}
NOTE_WIDTH = 80
"""Signs in a line under the title: what fits beside long labels on the left."""
WIDE = 30
"""Positive values that span more than this factor are drawn on a logarithmic axis."""


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
    axes.text(0.5, 0.5, message, transform=axes.transAxes, ha="center", va="center", fontsize=12, color="#444444")


def unmet(history: History) -> str:
    """What to say where no witnessed fault is to be seen."""
    told = history.tells(FaultWitnessed)
    return "no faults were witnessed in this run" if told else "which faults were met is not known from such a log"


def legend(figure: Figure, axes: Axes) -> None:
    """Below the picture, so that it hides no data."""
    handles, labels = axes.get_legend_handles_labels()
    if handles:
        columns = 4 if max(map(len, labels)) < 28 else 2
        figure.legend(
            handles, labels, loc="outside lower center", ncols=min(columns, len(handles)), frameon=False, fontsize=9
        )


def scale(axes: Axes, values: Sequence[float], *, axis: str) -> str:
    """A logarithmic axis where the values span much, else a linear one from 0; returns what to add to the axis's label."""
    positive = [value for value in values if value > 0]
    set_scale, set_limits = (axes.set_xscale, axes.set_xlim) if axis == "x" else (axes.set_yscale, axes.set_ylim)
    if len(positive) > 1 and max(positive) / min(positive) > WIDE:
        low, high = max(min(positive), max(positive) / 1e6), max(positive)
        set_scale("log")
        set_limits(low / 1.6, high * 1.6)
        which = axes.xaxis if axis == "x" else axes.yaxis
        which.set_major_formatter(lambda value, _: f"{value:g}")
        which.set_minor_formatter(lambda *_: "")
        return ", logarithmic"
    set_limits(0, (max(positive) if positive else 1.0) * 1.08)
    return ""


def short(text: str, width: int = 26) -> str:
    """The text in one line of at most `width` signs."""
    line = "".join(sign if sign.isprintable() else "?" for sign in " ".join(text.split())).replace("$", r"\$")
    if len(line) <= width:
        return line
    tail = width // 3  # names of one family differ at their end
    return f"{line[: width - tail - 1]}…{line[-tail:]}"


def spread(count: int) -> list[float]:
    """Offsets in ±0.22 that keep points of one row apart, the same each time (golden ratio steps)."""
    return [((n * 0.618033988749895) % 1 - 0.5) * 0.44 for n in range(count)]
