"""The share of incidents that are not over yet, over the time since the fault began."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chaoslab.analysis.measures.mttr import ENOUGH
from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.reports.charts.palette import INK, OUTCOMES, SLATE
from chaoslab.reports.charts.style import canvas, counted, legend, nothing, unmet
from chaoslab.reports.curve import curve

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def recovery_curve(report: RunReport) -> Figure:
    """Kaplan–Meier's curve of all incidents with its 95 % interval (log–log), a line at the share that never recovered,
    or did so with harm, and a stroke where the log ends before an incident does."""
    met, title = report.recovery.value.incidents, "Recovery over time"
    found = curve(report)
    if found is None:
        figure, axes = canvas(title)
        few = f"{counted(len(met), 'incident')}: too few for a curve ({ENOUGH} at least)"
        none = "no fault was met from which an agent could recover"
        nothing(axes, few if met else f"no data: {none if report.met else unmet(report)}")
        return figure
    over = sum(incident.recovered for incident in met)
    note = f"{counted(found.n, 'incident')}, {over:,} recovered; Kaplan–Meier, band: 95 % interval"
    figure, axes = canvas(title, note)
    axes.fill_between(found.times_s, found.lows, found.highs, color=SLATE, alpha=0.2, linewidth=0)
    axes.plot(found.times_s, found.shares, color=INK, linewidth=2, label="not recovered yet")
    if found.never:
        label = f"never recovered, or with harm ({found.never:,})"
        axes.axhline(found.never / found.n, color=OUTCOMES["harm"].color, linestyle=(0, (6, 4)), label=label)
    if found.censored:
        xs, ys = zip(*found.censored, strict=True)
        axes.plot(
            xs, ys, linestyle="", marker="|", markersize=10, markeredgewidth=1.6, color=SLATE, clip_on=False,
            label=f"still open when the log ended ({found.n - over - found.never:,})",
        )  # fmt: skip
    axes.set_xlim(0, found.end_s * 1.03)
    axes.set_ylim(0, 1.02)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value * 100:.0f}")
    axes.set_xlabel("time since the beginning of the call that met the fault (s)")
    axes.set_ylabel("incidents not over yet (%)")
    legend(figure, axes)
    return figure
