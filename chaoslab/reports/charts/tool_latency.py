"""The duration of the attempts at each service."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from chaoslab.analysis.measures.latency import Attempt
from chaoslab.analysis.measures.quantiles import percentile
from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.reports.charts.marks import deadlines, groups
from chaoslab.reports.charts.palette import INK
from chaoslab.reports.charts.style import canvas, counted, legend, nothing, scale, shorts, spread

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BOX = 8
"""The fewest points for a box: with fewer it would hide more than it shows."""
BOX_HALF = 0.31
"""Half the height of a box, in rows."""
WHISKER = 1.5
"""The longest whisker, in lengths of its box (Tukey)."""


def tool_latency(report: RunReport) -> Figure:
    """A row per service, with a point per attempt, and a box if eight or more reached the service."""
    every, told = report.attempts.value, report.knows_faults
    found = every.drawn
    if not every.number(lambda kind: kind.known or not kind.left):
        figure, axes = canvas("Latency by service")
        nothing(
            axes, "no data: the log tells no call's duration" if found or not told else "no call was made in this run"
        )
        return figure
    totals = every.numbers()
    names = sorted(totals)
    rows: dict[str, list[Attempt]] = {name: [] for name in names}
    for attempt in found:
        rows[attempt.target].append(attempt)
    here, untold = (every.number(of) for of in (lambda kind: not kind.left, lambda kind: kind.left and not kind.known))
    note = "point: one attempt; box: quartiles and median of those that reached the service (8 or more)"
    note += f"; {counted(here, 'attempt')} never reached it" if here else ""
    note += f"; of {untold:,} the log tells no duration" if untold else ""
    note += f"; {every.sample}" if every.sample else ""
    figure, axes = canvas("Latency by service", note, height_in=1.9 + 0.42 * len(rows))
    scaled = scale(axes, [a.duration_s for a in found], axis="x")
    offsets = {
        id(attempt): row + offset
        for row, name in enumerate(names)
        for attempt, offset in zip(rows[name], spread(len(rows[name])), strict=True)
    }
    for group in groups(found, report):
        group.scatter(axes, lambda a, share, aside: (scaled.place(a.duration_s, share), offsets[id(a)] + 0.1 * aside))
    deadlines(axes, report, axis="x")
    left = [(row, [a.duration_s for a in rows[name] if a.timed]) for row, name in enumerate(names)]
    boxed = [(row, durations) for row, durations in left if len(durations) >= BOX]
    _boxes(axes, [(row, scaled.places(durations)) for row, durations in boxed])
    labels = [f"{said} ({totals[name]:,})" for said, name in zip(shorts(names), names, strict=True)]
    axes.set_yticks(range(len(names)), labels)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_xlabel(f"duration of the attempt (s{scaled.suffix})")
    axes.grid(visible=False, axis="y")
    legend(figure, axes)
    return figure


def _boxes(axes: Axes, rows: Sequence[tuple[int, Sequence[float]]]) -> None:
    """A box from the first to the third quartile, a stroke at the median, and whiskers to the last points within 1.5
    times the box's length. All boxes are one line, and all medians another: matplotlib's own box plot makes seven for
    each row, and imports pyplot."""
    xs: list[float] = []
    ys: list[float] = []
    middles: list[tuple[float, int]] = []

    def line(*points: tuple[float, float]) -> None:
        xs.extend([*(x for x, _ in points), math.nan])
        ys.extend([*(y for _, y in points), math.nan])

    for row, places in rows:
        first, middle, third = (percentile(places, share) for share in (0.25, 0.5, 0.75))
        reach = WHISKER * (third - first)
        low = min(first, *(place for place in places if place >= first - reach))
        high = max(third, *(place for place in places if place <= third + reach))
        top, bottom = row - BOX_HALF, row + BOX_HALF
        line((first, top), (third, top), (third, bottom), (first, bottom), (first, top))
        for end, wall in ((low, first), (high, third)):
            line((wall, row), (end, row))
            line((end, row - BOX_HALF / 2), (end, row + BOX_HALF / 2))
        middles.append((middle, row))
    axes.plot(xs, ys, color=INK, linewidth=1.1, zorder=2)
    strokes = [(x, y) for x, row in middles for y in (row - BOX_HALF, row + BOX_HALF, math.nan)]
    axes.plot([x for x, _ in strokes], [y for _, y in strokes], color=INK, linewidth=2.2, zorder=2)
