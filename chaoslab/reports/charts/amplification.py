"""The requests that each target got for each one that was wanted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.reports.charts.palette import CALLS, INK, MET
from chaoslab.reports.charts.style import canvas, legend, nothing, shorts

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROWS = 16
"""The most targets in the picture, the most amplified."""


def amplification(report: RunReport) -> Figure:
    """A bar per target: attempts per request, over all requests and over those that met a fault. 1 is no retry."""
    found = report.amplification.value
    shown, title = found[:ROWS], "Retry amplification by target"
    note = "attempts for each request that was wanted; 1: none was tried again"
    note += f"; {len(found) - ROWS} more targets are amplified less" if len(found) > ROWS else ""
    figure, axes = canvas(title, note, height_in=1.9 + 0.46 * max(3, len(shown)))
    if not shown:
        nothing(axes, "no call was made in this run")
        return figure
    rows = range(len(shown))
    axes.barh([row - 0.19 for row in rows], [each.factor for each in shown], height=0.36, color=CALLS,
              label="calls")  # fmt: skip
    met = [(row, each.met_factor) for row, each in zip(rows, shown, strict=True) if each.met_factor is not None]
    if met:
        axes.barh([row + 0.19 for row, _ in met], [factor for _, factor in met], height=0.36, color=MET,
                  label="met a fault")  # fmt: skip
    for row, each in zip(rows, shown, strict=True):
        axes.text(1.01, row, f"most {each.most}", transform=axes.get_yaxis_transform(), va="center", fontsize=9)
    axes.axvline(1, color=INK, linewidth=0.8, linestyle=":")
    axes.set_yticks(
        rows,
        [
            f"{name} ({each.attempts:,}/{each.requests:,})"
            for name, each in zip(shorts([one.target for one in shown]), shown, strict=True)
        ],
    )
    axes.set_ylim(len(shown) - 0.4, -0.6)
    axes.set_xlim(0, max([2.0, *(each.factor for each in shown), *(factor for _, factor in met)]) * 1.06)
    axes.set_xlabel("attempts per request (count; attempts/requests beside the name)")
    axes.grid(visible=False, axis="y")
    legend(figure, axes)
    return figure
