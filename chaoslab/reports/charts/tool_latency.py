"""The duration of the attempts at each service."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chaoslab.analysis.measures.latency import Attempt
from chaoslab.analysis.run_report import RunReport
from chaoslab.reports.charts.marks import groups
from chaoslab.reports.charts.palette import INK
from chaoslab.reports.charts.style import canvas, counted, legend, nothing, scale, short, spread

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BOX = 8
"""The fewest points for a box: with fewer it would hide more than it shows."""


def tool_latency(report: RunReport) -> Figure:
    """A row per service, with a point per attempt, and a box if eight or more left the agent."""
    found = report.attempts.value
    told = report.knows_faults
    if not any(a.timed or not a.left for a in found):
        figure, axes = canvas("Latency by service")
        nothing(
            axes, "no data: the log tells no call's duration" if found or not told else "no call was made in this run"
        )
        return figure
    rows: dict[str, list[Attempt]] = {}
    for attempt in found:
        rows.setdefault(attempt.target, []).append(attempt)
    names = sorted(rows)
    here, untold = sum(not a.left for a in found), sum(a.left and not a.timed for a in found)
    note = "point: one attempt; box: quartiles and median of those that left (8 or more)"
    note += f"; {counted(here, 'attempt')} never left the agent" if here else ""
    note += f"; of {untold:,} the log tells no duration" if untold else ""
    figure, axes = canvas("Latency by service", note, height_in=1.9 + 0.42 * len(rows))
    scaled = scale(axes, [a.duration_s for a in found], axis="x")
    offsets = {
        id(attempt): row + offset
        for row, name in enumerate(names)
        for attempt, offset in zip(rows[name], spread(len(rows[name])), strict=True)
    }
    for group in groups(found, told=told):
        group.scatter(axes, lambda a, share: (scaled.place(a.duration_s, share), offsets[id(a)]))
    left = [(row, [a.duration_s for a in rows[name] if a.timed]) for row, name in enumerate(names)]
    boxed = [(row, durations) for row, durations in left if len(durations) >= BOX]
    if boxed:
        drawn = {"color": INK, "linewidth": 1.1}
        axes.boxplot(
            [scaled.places(durations) for _, durations in boxed],
            positions=[row for row, _ in boxed],
            orientation="horizontal",
            widths=0.62,
            showfliers=False,
            manage_ticks=False,
            boxprops=drawn,
            whiskerprops=drawn,
            capprops=drawn,
            medianprops=drawn | {"linewidth": 2.2},
        )
    axes.set_yticks(range(len(names)), [f"{short(name)} ({len(rows[name]):,})" for name in names])
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_xlabel(f"duration of the attempt (s{scaled.suffix})")
    axes.grid(visible=False, axis="y")
    legend(figure, axes)
    return figure
