"""The duration of the attempts at each service."""

import math
from collections.abc import Sequence

from chaoslab.analysis.measures.quantiles import compute_percentile
from chaoslab.reports._types import Axes, Figure
from chaoslab.reports.charts._marks import draw_deadlines, group_attempts_by_fault, select_ended_attempts
from chaoslab.reports.charts._palette import INK
from chaoslab.reports.charts._style import (
    compute_spread_offsets,
    draw_legend,
    draw_message_figure,
    label_rows,
    make_figure,
    set_duration_axis,
    shorten_labels,
)
from chaoslab.reports.contents._parts import CALLS, join_key_figure_sentences
from chaoslab.reports.frames import Frames

BOX = 8
"""The fewest points for a box: with fewer it would hide more than it shows."""
BOX_HALF = 0.31
"""Half the height of a box, in rows."""
WHISKER = 1.5
"""The longest whisker, in lengths of its box (Tukey)."""


def tool_latency(run: Frames) -> Figure:
    """A row per service, with a point per attempt, and a box if eight or more reached the service."""
    attempts_table, report = select_ended_attempts(run), run.measures
    has_reached = attempts_table["left"]
    if attempts_table.empty:
        return draw_message_figure("Latency by service", "no call was made in this run")
    rows = {
        name: attempts_table[attempts_table["target"] == name] for name in sorted(attempts_table["target"].unique())
    }
    names, note = [*rows], join_key_figure_sentences(report, CALLS, "latency without a fault")
    note += " Point: one attempt; box: quartiles and median of those that reached the service (8 or more)."
    figure, axes = make_figure("Latency by service", note, height_in=1.9 + 0.42 * len(rows))
    scaled = set_duration_axis(axes, attempts_table["duration_s"].tolist(), axis="x")
    offsets = {
        index: row + offset
        for row, service_attempts in enumerate(rows.values())
        for index, offset in zip(service_attempts.index, compute_spread_offsets(len(service_attempts)), strict=True)
    }
    for group in group_attempts_by_fault(attempts_table, report):
        group.draw_scatter(
            axes, lambda a, share, aside: (scaled.to_position(a.duration_s, share), offsets[a.Index] + 0.1 * aside)
        )
    draw_deadlines(axes, report, axis="x")
    timed = attempts_table.loc[has_reached].groupby("target")["duration_s"]
    boxed = [(names.index(name), durations.tolist()) for name, durations in timed if len(durations) >= BOX]
    _draw_boxes(axes, [(row, scaled.to_positions(durations)) for row, durations in boxed])
    labels = [
        f"{short_name} ({len(service_attempts):,})"
        for short_name, service_attempts in zip(shorten_labels(names), rows.values(), strict=True)
    ]
    label_rows(axes, labels)
    axes.set_xlabel(f"duration of the attempt (s{scaled.suffix})")
    draw_legend(figure, axes)
    return figure


def _draw_boxes(axes: Axes, rows: Sequence[tuple[int, Sequence[float]]]) -> None:
    """A box from the first to the third quartile, a stroke at the median, and whiskers to the last points within 1.5
    times the box's length. All boxes are one line, and all medians another: matplotlib's own box plot makes seven for
    each row, and imports pyplot."""
    xs: list[float] = []
    ys: list[float] = []
    middles: list[tuple[float, int]] = []

    def add_line(*points: tuple[float, float]) -> None:
        # NaN breaks a line, so all boxes are one artist.
        xs.extend([*(x for x, _ in points), math.nan])
        ys.extend([*(y for _, y in points), math.nan])

    for row, positions in rows:
        first, middle, third = (compute_percentile(positions, share) for share in (0.25, 0.5, 0.75))
        reach = WHISKER * (third - first)
        # A whisker ends at a point, or at the box if none is beyond it.
        low = min(first, *(position for position in positions if position >= first - reach))
        high = max(third, *(position for position in positions if position <= third + reach))
        top, bottom = row - BOX_HALF, row + BOX_HALF
        add_line((first, top), (third, top), (third, bottom), (first, bottom), (first, top))
        for end, wall in ((low, first), (high, third)):
            add_line((wall, row), (end, row))
            add_line((end, row - BOX_HALF / 2), (end, row + BOX_HALF / 2))
        middles.append((middle, row))
    axes.plot(xs, ys, color=INK, linewidth=1.1, zorder=2)
    strokes = [(x, y) for x, row in middles for y in (row - BOX_HALF, row + BOX_HALF, math.nan)]
    axes.plot([x for x, _ in strokes], [y for _, y in strokes], color=INK, linewidth=2.2, zorder=2)
