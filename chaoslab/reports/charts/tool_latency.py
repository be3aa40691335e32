"""How long the attempts at each service took."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chaoslab.events import FaultWitnessed
from chaoslab.history import History
from chaoslab.measures.latency import Attempt, attempts
from chaoslab.reports.charts.style import BLUE, VERMILION, canvas, legend, nothing, scale, short, spread

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BOX = 8
"""A box over fewer points would hide more than it shows."""


def tool_latency(history: History) -> Figure:
    """A row per service: every attempt a point, a box where there are eight or more."""
    rows: dict[str, list[Attempt]] = {}
    for attempt in attempts(history):
        rows.setdefault(attempt.target, []).append(attempt)
    told = history.tells(FaultWitnessed)
    if not rows:
        figure, axes = canvas("Latency by service")
        nothing(axes, "no call left the agent in this run" if told else "no data: the log tells no call's duration")
        return figure
    note = "point: one attempt; box: quartiles and median (8 or more)"
    figure, axes = canvas("Latency by service", note, height_in=1.9 + 0.42 * len(rows))
    names = sorted(rows)
    for met, color, label in (
        (False, BLUE, "no fault" if told else "with a fault or without"),
        (True, VERMILION, "met a fault"),
    ):
        xs, ys = [], []
        for row, name in enumerate(names):
            for attempt, offset in zip(rows[name], spread(len(rows[name])), strict=True):
                if bool(attempt.faults) is met:
                    xs.append(max(attempt.duration_s, 1e-4))
                    ys.append(row + offset)
        if xs:
            axes.scatter(xs, ys, s=10, color=color, alpha=0.6, linewidths=0, label=f"{label} ({len(xs)})")
    boxed = [(row, rows[name]) for row, name in enumerate(names) if len(rows[name]) >= BOX]
    if boxed:
        axes.boxplot(
            [[max(a.duration_s, 1e-4) for a in found] for _, found in boxed],
            positions=[row for row, _ in boxed],
            orientation="horizontal",
            widths=0.62,
            showfliers=False,
            medianprops={"color": "#000000", "linewidth": 1.6},
        )
    axes.set_yticks(range(len(names)), [f"{short(name)} ({len(rows[name])})" for name in names])
    axes.set_ylim(len(names) - 0.4, -0.6)
    values = [max(a.duration_s, 1e-4) for found in rows.values() for a in found]
    axes.set_xlabel(f"duration of the attempt (s{scale(axes, values, axis='x')})")
    axes.grid(visible=False, axis="y")
    legend(figure, axes)
    return figure
