"""The number of trials and calls that ended in each interval of the run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.base.durations import duration
from chaoslab.reports.charts.palette import CALLS, PROMPTS
from chaoslab.reports.charts.style import canvas, counted, legend, nothing

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def throughput(report: RunReport) -> Figure:
    """Steps of calls and trials over the run's time."""
    from matplotlib.ticker import MaxNLocator

    found = report.throughput.value
    if found is None:
        figure, axes = canvas("Throughput over time")
        nothing(axes, "nothing ended in this run")
        return figure
    prompts, calls = sum(found.prompts), sum(found.calls)
    note = f"{counted(prompts, 'trial')} and {counted(calls, 'call')} ended in {duration(found.lasted_s, 1)}"
    figure, axes = canvas("Throughput over time", note)
    whose = "calls (tools and model)" if report.knows_usage else "calls (tools)"
    edges = [n * found.width_s for n in range(len(found.calls) + 1)]
    axes.stairs(
        found.calls,
        edges,
        color=CALLS,
        fill=True,
        label=whose,
    )
    axes.stairs(found.prompts, edges, edgecolor=PROMPTS, linewidth=1.8, label="trials")
    axes.set_xlim(0, edges[-1])
    axes.set_ylim(0, max(*found.calls, *found.prompts, 1) * 1.08)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("time since the first trial began (s)")
    axes.set_ylabel(f"ended per {found.width_s:g} s (count)")
    legend(figure, axes)
    return figure
