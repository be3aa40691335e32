"""The durations of attempts with and without a fault, by target."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chaoslab.analysis.measures.quantiles import Quantiles
from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.reports.charts.palette import CLEAN, MET
from chaoslab.reports.charts.style import canvas, legend, nothing, scale, shorts, unmet

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROWS = 16
"""The most targets in the picture, those with the most attempts."""
KINDS = (("no fault", CLEAN, "o", -0.17), ("met a fault", MET, "D", 0.17))
"""Each kind: its name, colour, shape, and place within its row."""


def latency_by_fault(report: RunReport) -> Figure:
    """Two lines per target, without and with a fault: the median as a point, from the 10th to the 90th percentile.
    Percentiles by type 7 of Hyndman and Fan."""
    title = "Latency with and without faults"
    durations = report.attempts.value.by_target
    if not durations or not report.knows_faults:
        figure, axes = canvas(title)
        nothing(axes, unmet(report) if not report.knows_faults else "no data: no call with a duration in this run")
        return figure
    ranked = sorted(durations, key=lambda name: (-len(durations[name]), name))
    names = ranked[:ROWS]
    note = "point: median; line: 10th to 90th percentile; n without and with a fault"
    note += f"; {len(ranked) - ROWS} more targets have fewer attempts" if len(ranked) > ROWS else ""
    figure, axes = canvas(title, note, height_in=1.9 + 0.46 * len(names))
    figures = {(name, kind): _spread(durations[name].both[kind]) for name in names for kind in (0, 1)}
    scaled = scale(axes, [value for found in figures.values() if found for value in found], axis="x")
    for kind, (said, color, marker, aside) in enumerate(KINDS):
        drawn = [(row + aside, found) for row, name in enumerate(names) if (found := figures[name, kind])]
        if drawn:
            lows, middles, highs = zip(*(scaled.places(found) for _, found in drawn), strict=True)
            rows = [row for row, _ in drawn]
            axes.hlines(rows, lows, highs, color=color, linewidth=3, alpha=0.75)
            axes.plot(middles, rows, linestyle="", marker=marker, markersize=7, color=color, label=said, clip_on=False)
    labels = [
        f"{said} ({', '.join(f'{len(each):,}' for each in durations[name].both)})"
        for name, said in zip(names, shorts(names), strict=True)
    ]
    axes.set_yticks(range(len(names)), labels)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_xlabel(f"duration of the attempt (s{scaled.suffix})")
    axes.grid(visible=False, axis="y")
    legend(figure, axes)
    return figure


def _spread(values: Quantiles) -> tuple[float, float, float] | None:
    """The 10th, 50th and 90th percentiles; None without values."""
    return (values.at(0.1), values.at(0.5), values.at(0.9)) if values else None
