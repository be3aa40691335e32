"""The duration of the attempts at each service."""

import math
from collections.abc import Sequence

from chaoslab.analysis.measures.quantiles import percentile
from chaoslab.reports._types import Axes, Figure
from chaoslab.reports.charts._marks import attempts, deadlines, groups
from chaoslab.reports.charts._palette import INK
from chaoslab.reports.charts._style import canvas, legend, nothing, rows_named, scale, shorts, spread
from chaoslab.reports.frames import Frames
from chaoslab.reports.page import count

BOX = 8
"""The fewest points for a box: with fewer it would hide more than it shows."""
BOX_HALF = 0.31
"""Half the height of a box, in rows."""
WHISKER = 1.5
"""The longest whisker, in lengths of its box (Tukey)."""


def tool_latency(run: Frames) -> Figure:
    """A row per service, with a point per attempt, and a box if eight or more reached the service."""
    found, report = attempts(run), run.measures
    known, left = found["duration_s"].notna(), found["left"]
    if not (known | ~left).any():
        none = found.empty
        return nothing(
            "Latency by service",
            "no call was made in this run" if none else "no data: the log tells no call's duration",
        )
    rows = {name: found[found["target"] == name] for name in sorted(found["target"].unique())}
    names, here, untold = [*rows], (~left).sum(), (left & ~known).sum()
    note = "point: one attempt; box: quartiles and median of those that reached the service (8 or more)"
    note += f"; {count(here, 'attempt')} never reached it" if here else ""
    note += f"; of {untold:,} the log tells no duration" if untold else ""
    figure, axes = canvas("Latency by service", note, height_in=1.9 + 0.42 * len(rows))
    scaled = scale(axes, found["duration_s"].tolist(), axis="x")
    offsets = {
        at: row + offset
        for row, mine in enumerate(rows.values())
        for at, offset in zip(mine.index, spread(len(mine)), strict=True)
    }
    for group in groups(found, report):
        group.scatter(axes, lambda a, share, aside: (scaled.place(a.duration_s, share), offsets[a.Index] + 0.1 * aside))
    deadlines(axes, report, axis="x")
    timed = found.loc[known & left].groupby("target")["duration_s"]
    boxed = [(names.index(name), durations.tolist()) for name, durations in timed if len(durations) >= BOX]
    _boxes(axes, [(row, scaled.places(durations)) for row, durations in boxed])
    labels = [f"{said} ({len(mine):,})" for said, mine in zip(shorts(names), rows.values(), strict=True)]
    rows_named(axes, labels)
    axes.set_xlabel(f"duration of the attempt (s{scaled.suffix})")
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
