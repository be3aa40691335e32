"""The time from a fault to a right answer, per fault."""

import math

from chaoslab.analysis.measures.intervals import Estimate
from chaoslab.analysis.measures.mttr import Ending, Recovery
from chaoslab.base.durations import format_duration
from chaoslab.reports._types import Axes, DataFrame, Figure
from chaoslab.reports.charts._palette import INK, OUTCOMES, SLATE, choose_fault_looks_of_run
from chaoslab.reports.charts._style import (
    POINTS,
    DurationAxis,
    choose_mark_size,
    compute_spread_offsets,
    describe_no_faults_met,
    draw_legend,
    draw_message_figure,
    label_rows,
    make_figure,
    sample_rows,
    set_duration_axis,
    shorten_label,
)
from chaoslab.reports.contents._parts import RECOVERY, join_key_figure_sentences
from chaoslab.reports.frames import Frames
from chaoslab.reports.page import format_count

SHAPES = {
    Ending.RETRY: ("o", "recovered by retry"),
    Ending.FALLBACK: ("s", "recovered by fallback"),
    Ending.LATE: ("^", "late, but right"),
    Ending.HARM: ("X", "recovered with harm"),
    Ending.NEVER: (">", "never recovered (at least so long)"),
    Ending.CENSORED: ("D", "cut short, by the log's end or a dead service"),
}
"""The shape of each ending. The colour is the fault's, except for harm, which has the same in every chart."""
OPEN = (Ending.NEVER, Ending.CENSORED)
"""Those that end without a right answer, whose shapes are outlines."""


def mttr(run: Frames) -> Figure:
    """A row per fault, with a point per incident, open arrows for those that never recovered, and Kaplan–Meier's median
    with its interval."""
    report, incidents, title = run.measures, run.incidents, "Time to recovery by fault"
    if incidents.empty:
        reason = "no fault was met from which an agent could recover" if report.met else describe_no_faults_met(report)
        return draw_message_figure(title, f"no data: {reason}")
    by_fault = report.recovery.value.by_fault
    note = join_key_figure_sentences(report, RECOVERY, "recovered", "time to recovery")
    most_points = incidents.value_counts(["fault", "ending"]).max()
    note += " Of the most frequent kinds not every point is drawn." if most_points > POINTS else ""
    figure, axes = make_figure(title, note, height_in=2.4 + 0.55 * len(by_fault))
    rows = [*by_fault]
    scaled = set_duration_axis(axes, incidents["duration_s"].tolist(), axis="x")
    looks = choose_fault_looks_of_run(report, rows)
    for row, fault in enumerate(rows):
        color = looks[fault].color
        _draw_incident_points(axes, scaled, row, incidents[incidents["fault"] == fault], color)
    # An empty scatter is drawn for the legend alone: one entry for each ending, in no fault's colour.
    for ending, (marker, label) in SHAPES.items():
        if number := (incidents["ending"] == ending).sum():
            color = OUTCOMES["harm"].color if ending is Ending.HARM else SLATE
            face_color = "none" if ending in OPEN else color
            legend_label = f"{label} ({number:,})"
            axes.scatter([], [], s=30, facecolors=face_color, edgecolors=color, marker=marker, label=legend_label)
    marked = False
    for row, fault_recovery in enumerate(by_fault.values()):
        # The legend names it once.
        marked = _draw_median_interval(axes, scaled, row, fault_recovery.median, marked=marked) or marked
        axes.text(
            1.01, row, _describe_recovery(fault_recovery), transform=axes.get_yaxis_transform(), va="center", fontsize=9
        )
    labels = [f"{shorten_label(fault)} ({fault_recovery.n:,})" for fault, fault_recovery in by_fault.items()]
    label_rows(axes, labels)
    axes.set_xlabel(f"time from the fault's beginning to that request's right answer (s{scaled.suffix})")
    draw_legend(figure, axes)
    return figure


def _draw_incident_points(axes: Axes, scaled: DurationAxis, row: int, fault_incidents: DataFrame, color: str) -> None:
    # Spread over all endings of a row, so that points of different shapes do not hide each other either.
    positioned = fault_incidents.assign(y=[row + offset for offset in compute_spread_offsets(len(fault_incidents))])
    for ending, (marker, _) in SHAPES.items():
        drawn, _ = sample_rows(positioned[positioned["ending"] == ending])
        size, width = choose_mark_size(40 if marker == "X" else 30, len(drawn))
        edge = OUTCOMES["harm"].color if ending is Ending.HARM else color
        axes.scatter(
            scaled.to_positions(drawn["duration_s"]),
            drawn["y"].tolist(),
            s=size,
            facecolors="none" if ending in OPEN else edge,
            edgecolors=edge if ending in OPEN else "white",
            linewidths=max(width, 0.8) if ending in OPEN else width,
            marker=marker,
            clip_on=False,
        )


def _draw_median_interval(
    axes: Axes, scaled: DurationAxis, row: int, estimate: Estimate | None, *, marked: bool
) -> bool:
    if estimate is None:
        return False
    low, high = estimate.interval.low, estimate.interval.high
    # Without an upper end the line runs on to the edge of the chart.
    right = axes.get_xlim()[1] if math.isinf(high) else scaled.to_position(high)
    axes.plot([scaled.to_position(low), right], [row, row], color=INK, linewidth=1.2, zorder=3)
    label = "" if marked else "Kaplan–Meier median, 95 % interval"
    axes.plot(
        [scaled.to_position(estimate.value)] * 2,
        [row - 0.34, row + 0.34],
        color=INK,
        linewidth=2.4,
        zorder=4,
        label=label,
    )
    return True


def _describe_recovery(fault_recovery: Recovery) -> str:
    if not fault_recovery.has_enough_data:
        return f"{format_count(fault_recovery.n, 'fault')}: too few"
    text = (
        f"median {format_duration(fault_recovery.median.value, 2)}" if fault_recovery.median else "median not reached"
    )
    if fault_recovery.since_notice_s is not None:
        text += (
            f"\n{fault_recovery.retry + fault_recovery.fallback:,} repaired in "
            f"{format_duration(fault_recovery.since_notice_s, 2)}"
        )
    return text
