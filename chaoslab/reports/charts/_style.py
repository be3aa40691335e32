"""The common parts of all charts: layout, title, note, scales, and texts that fit. palette.py has the colours."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.config.settings import Settings, format_value, lists_to_tuples
from chaoslab.reports._types import Artist, Axes, DataFrame, Figure
from chaoslab.reports.charts._palette import Look
from chaoslab.reports.text import shorten_names_distinctly

PAD_IN = 0.045
"""The free space around the texts, in inches."""
TITLE = 0.012
"""The place of the title and of the note below it, from the left, as a share of the figure."""
NOTE_WIDTH = 72
"""The most characters in a line under the title: more do not fit beside long labels on the left."""
LEGEND_WIDTH = 100
"""The most characters in a line of the legend."""
WIDE = 30
"""The factor between positive values above which an axis is logarithmic."""
DECADES = 6
"""The most decades that a logarithmic axis shows."""
TICKS = 7
TITLE_IN, SIGNED_IN = 0.11, 0.068
"""The width of a character of the title, and of one beside it."""
UNSIGNED = ("SEED", "WORLD", "NOW", "BASE_PORT", "TOXIPROXY_URL", "GROQ_API_KEY")
"""The settings that are not named beside the title."""
POINTS = 2000
"""The most points drawn of a group. More would take longer and overlap."""

CROWD = 300
"""The number of points of one kind above which they are drawn smaller."""


def make_figure(title: str, note: str = "", *, height_in: float = 4.2) -> tuple[Figure, Axes]:
    """An empty figure; `note` is the line under its title."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.4, height_in), layout="constrained")
    figure.get_layout_engine().set(w_pad=PAD_IN, h_pad=2 * PAD_IN)  # type: ignore[union-attr, call-arg]
    figure.suptitle(title, x=TITLE, ha="left", fontsize=13, fontweight="bold")
    axes = figure.add_subplot()
    # The strokes between the decades are drawn by _draw_minor_lines.
    axes.tick_params(which="minor", labelbottom=False, labelleft=False)
    # A given y spares matplotlib the search for a place above the ticks, an eighth of the time to draw.
    axes.set_title(textwrap.fill(note, NOTE_WIDTH), loc="left", fontsize=9, color="#444444", y=1.0)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="#E3E3E3", linewidth=0.7)
    axes.set_axisbelow(True)
    return figure, axes


def draw_message_figure(title: str, message: str) -> Figure:
    """A figure with a message in place of axes. Such a chart is not written (`read_blank_reason`)."""
    figure, axes = make_figure(title)
    axes.set_gid(message)
    axes.set_axis_off()
    wrapped_message = textwrap.fill(message, NOTE_WIDTH)
    axes.text(
        0.5, 0.5, wrapped_message, transform=axes.transAxes, ha="center", va="center", fontsize=12, color="#444444"
    )
    return figure


def read_blank_reason(figure: Figure) -> str:
    """The message of a chart that shows nothing else; empty if it shows something."""
    return next((gid for axes in figure.axes if (gid := axes.get_gid())), "")


def describe_no_faults_met(report: RunReport) -> str:
    """The text for a chart without any witnessed fault."""
    return "no faults were witnessed in this run" + ("" if report.of_functions else " (CHAOS_LEVEL=2 makes some)")


def add_run_caption(figure: Figure, report: RunReport) -> None:
    """Names the run at the right of the title: its name, seed and world, and the settings that are not as usual."""
    run = report.started
    seed = [f"seed {run.seed}", run.world] if run is not None else []
    usual_settings = {} if report.of_functions else Settings().to_masked_dict()
    settings = run.settings if run is not None else {}
    chosen = [
        f"{name}={format_value(lists_to_tuples(settings[name]))}" for name, value in usual_settings.items()
        # Read back from JSON, a tuple is a list.
        if name in settings and name not in UNSIGNED and lists_to_tuples(settings[name]) != value
    ]  # fmt: skip
    room = int((figure.get_figwidth() - len(figure.get_suptitle()) * TITLE_IN) / SIGNED_IN)
    signed = [*chosen]
    while len(" ".join(signed)) > room:
        signed = [*signed[:-2], "…"]
    # matplotlib reads what stands between two $ as a formula.
    lines = [shorten_label(" · ".join(filter(None, [report.name, *seed])), room), " ".join(signed).replace("$", r"\$")]
    signature = "\n".join(filter(None, lines))
    y = 1 - PAD_IN / figure.get_figheight()
    figure.text(1 - TITLE, y, signature, ha="right", va="top", fontsize=7, color="#777777", linespacing=1.15)


def label_rows(axes: Axes, labels: Sequence[str]) -> None:
    """Makes each unit of the upright axis a row with its label, the first at the top."""
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.grid(visible=False, axis="y")


def set_percent_axis(axes: Axes, label: str) -> None:
    """Makes the upright axis one of shares, in percent. `label`: its label, without the unit."""
    axes.set_ylim(-0.03, 1.03)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value * 100:.0f}")
    axes.set_ylabel(f"{label} (%)")


def draw_error_bar_line(
    axes: Axes,
    points: Sequence[tuple[float, float, float, float]],
    look: tuple[Look, str],
    label: str,
    **style_options: Any,
) -> None:
    """Draws a line through points that have intervals: (x, y, low, high) of each. `look`: as `series` gives it."""
    (color, marker), style = look
    xs, ys = [x for x, *_ in points], [y for _, y, *_ in points]
    ends = [[y - low for _, y, low, _ in points], [high - y for _, y, _, high in points]]
    default_style: dict[str, Any] = {"color": color, "marker": marker, "linestyle": style, "capsize": 4, "label": label}
    axes.errorbar(xs, ys, yerr=ends, **default_style | style_options)


def draw_legend(figure: Figure, axes: Axes) -> None:
    """Draws the legend below the chart, so that it hides no data; a long one makes the figure higher."""
    handles, labels = axes.get_legend_handles_labels()
    if handles:
        labels = [textwrap.fill(label, LEGEND_WIDTH) for label in labels]
        longest = max(map(len, labels))
        columns = min(4 if longest < 28 else 2 if longest < 60 else 1, len(handles))
        rows = math.ceil(len(handles) / columns) + sum(label.count("\n") for label in labels)
        draw_legend_keys(figure, handles, labels, columns=columns, higher_in=0.2 * max(0, rows - 2))


def draw_legend_keys(
    figure: Figure, handles: Sequence[Artist], labels: Sequence[str], *, columns: int = 4, higher_in: float = 0.0
) -> None:
    """Draws these keys as the legend; the figure becomes higher by so much."""
    height_in = figure.get_figheight() + higher_in
    if higher_in:
        figure.set_figheight(height_in)
    figure.legend(
        handles,
        labels,
        loc="outside lower center",
        ncols=columns,
        frameon=False,
        fontsize=9,
        borderaxespad=PAD_IN * 72 / 9,
    )


@dataclass(frozen=True)
class DurationAxis:
    """An axis of durations. `low`: the smallest value with its own position. `edge`: the positions for durations of 0.
    `suffix`: an addition to the axis's label."""

    suffix: str
    low: float
    edge: tuple[float, float]

    def to_position(self, value: float, share: float = 0.5) -> float:
        """The position of a duration. `share` (0-1) spreads those at the edge, where the axis has no scale."""
        if value > 0:
            # What lies below the shown decades is drawn at the axis' end, not left out.
            return max(value, self.low)
        start, end = self.edge
        # On a logarithmic axis even distances are powers.
        return start * (end / start) ** share if start > 0 else start + (end - start) * share

    def to_positions(self, values: Iterable[float]) -> list[float]:
        return [self.to_position(value) for value in values]


def set_duration_axis(axes: Axes, values: Sequence[float], *, axis: str) -> DurationAxis:
    """Makes an axis logarithmic if the values span a large factor, else linear. Values of 0 are drawn at its edge,
    with a label."""
    from matplotlib.ticker import NullLocator

    positive = [value for value in values if value > 0]
    which = axes.xaxis if axis == "x" else axes.yaxis
    limits = axes.set_xlim if axis == "x" else axes.set_ylim
    logarithmic = len(positive) > 1 and max(positive) / min(positive) > WIDE
    zero = 0.0 in values
    if not zero and not logarithmic:
        limits(0, max(positive, default=1.0) * 1.08)
        return DurationAxis("", 0.0, (0.0, 0.0))
    high = max(positive, default=1.0)
    if logarithmic:
        (axes.set_xscale if axis == "x" else axes.set_yscale)("log")
        # Six decades at most: one value of a microsecond would squeeze all others.
        low = max(min(positive), high / 10**DECADES)
        duration_axis = DurationAxis(", logarithmic", low, (low * (low / high) ** 0.19, low * (low / high) ** 0.07))
        axis_start, wall = low * (low / high) ** 0.24, low * (low / high) ** 0.035
        ticks = _list_decades(low / 1.2, high * 1.6)
        which.set_minor_locator(NullLocator())
        _draw_minor_lines(axes, axis, low, high * 1.6)
    else:
        duration_axis = DurationAxis("", 0.0, (-0.19 * high, -0.07 * high))
        axis_start, wall = -0.24 * high, -0.035 * high
        ticks = [tick for tick in which.get_major_locator().tick_values(0, high) if 0 <= tick <= high * 1.08]
    if not zero:
        limits(low / 1.6, high * 1.6)
        which.set_ticks(ticks, [f"{tick:g}" for tick in ticks])
        return duration_axis
    limits(axis_start, high * 1.6 if logarithmic else high * 1.08)
    side = "; left of" if axis == "x" else ";\nbelow"
    duration_axis = replace(duration_axis, suffix=f"{duration_axis.suffix}{side} the dotted line: 0")
    ticks = [tick for tick in ticks if tick > 0]
    which.set_ticks([duration_axis.to_position(0), *ticks], ["0", *(f"{tick:g}" for tick in ticks)])
    (axes.axvline if axis == "x" else axes.axhline)(wall, color="#B8B8B8", linewidth=0.8, linestyle=":", zorder=0.5)
    return duration_axis


def _list_decades(low: float, high: float) -> list[float]:
    """The powers of ten on a logarithmic axis, TICKS at most."""
    first, last = math.ceil(math.log10(low)), math.floor(math.log10(high))
    # or 1, where no power of ten lies on the axis.
    return [10.0**n for n in range(first, last + 1, math.ceil((last - first + 1) / TICKS) or 1)]


def _draw_minor_lines(axes: Axes, axis: str, low: float, high: float) -> None:
    """Strokes at 2 to 9 times each power of ten. As ticks each would be five artists of matplotlib's."""
    from matplotlib.markers import TICKRIGHT, TICKUP

    first, last = math.floor(math.log10(low)), math.floor(math.log10(high))
    at = [n * 10.0**power for power in range(first, last + 1) for n in range(2, 10)]
    at = [tick for tick in at if low / 1.05 <= tick <= high]
    strokes: dict[str, Any] = {"linestyle": "", "markersize": 3, "markeredgewidth": 0.6, "color": "black", "label": ""}
    if axis == "x":
        axes.plot(at, [0.0] * len(at), marker=TICKUP, transform=axes.get_xaxis_transform(), **strokes)
    else:
        axes.plot([0.0] * len(at), at, marker=TICKRIGHT, transform=axes.get_yaxis_transform(), **strokes)


def sample_rows(rows: DataFrame) -> tuple[DataFrame, str]:
    """At most POINTS of the rows, evenly spaced in their order, and a text on the selection."""
    # Evenly, not at random: the same run gives the same picture.
    step = math.ceil(len(rows) / POINTS)
    return (rows, "") if step <= 1 else (rows[::step], f", every {format_ordinal(step)} drawn")


def choose_mark_size(size: float, count: int) -> tuple[float, float]:
    """The size of points and the width of their edges. A crowd gets small points without edges, which would hide the
    colours."""
    return (size, 0.4) if count <= CROWD else (max(8.0, size * 0.35), 0.0)


def format_ordinal(number: int) -> str:
    """A number as text: 2nd, 3rd, 4th."""
    last = number % 10 if number // 10 % 10 != 1 else 0
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(last, 'th') }"


def shorten_label(text: str, width: int = 26) -> str:
    """The text in one line of at most `width` characters."""
    return shorten_labels([text], width)[0]


def shorten_labels(texts: Sequence[str], width: int = 26) -> list[str]:
    """Each text in one line of at most `width` characters; different ones stay different."""
    lines = ["".join(sign if sign.isprintable() else "?" for sign in " ".join(text.split())) for text in texts]
    cut = shorten_names_distinctly(lines, width)
    # matplotlib reads what stands between two $ as a formula.
    return [cut[line].replace("$", r"\$") for line in lines]


def compute_spread_offsets(count: int) -> list[float]:
    """Offsets within ±0.22 that separate the points of a row, the same each time (golden ratio steps). One
    stands in the middle."""
    if count == 1:
        return [0.0]
    # Steps of the golden ratio never come near an earlier one, so neighbours do not hide each other.
    return [((n * 0.618033988749895) % 1 - 0.5) * 0.44 for n in range(count)]
