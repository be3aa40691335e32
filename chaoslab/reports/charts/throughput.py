"""The number of trials and calls that ended in each interval of the run."""

from chaoslab.base.durations import format_duration
from chaoslab.reports._types import Figure
from chaoslab.reports.charts._palette import CALLS, PROMPTS
from chaoslab.reports.charts._style import draw_legend, draw_message_figure, make_figure
from chaoslab.reports.frames import Frames
from chaoslab.reports.page import format_count


def throughput(run: Frames) -> Figure:
    """Steps of calls and trials over the run's time."""
    from matplotlib.ticker import MaxNLocator

    report, steps = run.measures, run.throughput
    measured = report.throughput.value
    if measured is None:
        return draw_message_figure("Throughput over time", "nothing ended in this run")
    trials, calls, edges = steps["trials"].tolist(), steps["calls"].tolist(), [0.0, *steps["to_s"]]
    note = (
        f"{format_count(sum(trials), 'trial')} and {format_count(sum(calls), 'call')} ended in "
        f"{format_duration(measured.lasted_s, 1)}"
    )
    figure, axes = make_figure("Throughput over time", note)
    calls_label = "calls (tools and model)" if report.knows_usage else "calls (tools)"
    axes.stairs(calls, edges, color=CALLS, fill=True, label=calls_label)
    axes.stairs(trials, edges, edgecolor=PROMPTS, linewidth=1.8, label="trials")
    axes.set_xlim(0, edges[-1])
    # 1 at least, since an axis needs a height.
    axes.set_ylim(0, max(*calls, *trials, 1) * 1.08)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("time since the first trial began (s)")
    axes.set_ylabel(f"ended per {edges[1]:g} s (count)")
    draw_legend(figure, axes)
    return figure
