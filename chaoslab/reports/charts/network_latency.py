"""The duration of each attempt over time, with the faults they met."""

from chaoslab.reports._types import Figure
from chaoslab.reports.charts._marks import MARK, draw_deadlines, group_attempts_by_fault, select_ended_attempts
from chaoslab.reports.charts._palette import LAB
from chaoslab.reports.charts._style import (
    describe_no_faults_met,
    draw_legend,
    draw_message_figure,
    make_figure,
    set_duration_axis,
)
from chaoslab.reports.contents._parts import CALLS, TROUBLE, join_key_figure_sentences
from chaoslab.reports.frames import Frames
from chaoslab.reports.page import format_count

TITLE = "Network latency of each attempt"


def network_latency(run: Frames) -> Figure:
    """A point per attempt, with a colour and a shape for each witnessed fault.
    Attempts that never reached their target are at the lower edge."""
    attempts_table, report = select_ended_attempts(run), run.measures
    if attempts_table.empty:
        return draw_message_figure(TITLE, "no call was made in this run")
    met_count = attempts_table["met"].astype(bool).sum()
    note = join_key_figure_sentences(report, CALLS, "latency without a fault")
    note += (
        f" {format_count(met_count, 'attempt')} met a fault." if met_count else f" {describe_no_faults_met(report)}."
    )
    if (disturbed := None if report.disturbance.unknown else report.disturbance.value) is not None:
        note += f" {join_key_figure_sentences(report, TROUBLE, 'attempts hit by a disturbance')}"
    figure, axes = make_figure(TITLE, note, height_in=4.8)
    scaled = set_duration_axis(axes, attempts_table["duration_s"].tolist(), axis="y")
    # ended_s counts from the run's begin, and the axis from its first trial's.
    first, last = attempts_table["ended_s"].min() - report.began_t, attempts_table["ended_s"].max() - report.began_t
    # or 1.0, since a chart needs a width, also if all ended at once.
    low, high = min(0.0, first), max(0.0, last) * 1.03 or 1.0
    for group in group_attempts_by_fault(attempts_table, report):
        group.draw_scatter(
            axes,
            lambda a, share, aside: (
                a.ended_s - report.began_t + aside * MARK * (high - low),
                scaled.to_position(a.duration_s, share),
            ),
        )
    draw_deadlines(axes, report, axis="y")
    if disturbed is not None:
        spans = [(span.begin_s - report.began_t, span.lasted_s) for span in disturbed.spans]
        disturbance_label = f"the lab was disturbed ({disturbed.span_count:,})"
        axes.broken_barh(
            spans,
            (0, 1),
            color=LAB,
            alpha=0.6,
            linewidth=0,
            zorder=0.4,
            label=disturbance_label,
            transform=axes.get_xaxis_transform(),
        )
    axes.set_xlim(low, high)
    axes.set_xlabel("time since the first trial began (s)")
    axes.set_ylabel(f"duration of the attempt (s{scaled.suffix})")
    draw_legend(figure, axes)
    return figure
