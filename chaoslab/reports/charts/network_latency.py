"""The duration of each attempt over time, with the faults they met."""

from collections.abc import Sequence

from chaoslab.reports._types import Axes, Figure
from chaoslab.reports.charts._marks import MARK, describe_attempts, draw_deadlines, group_by_fault, select_attempts
from chaoslab.reports.charts._palette import LAB
from chaoslab.reports.charts._style import describe_unmet, draw_legend, draw_message, make_canvas, scale_durations
from chaoslab.reports.frames import Frames
from chaoslab.reports.page import count

TITLE = "Network latency of each attempt"


def network_latency(run: Frames) -> Figure:
    """A point per attempt, with a colour and a shape for each witnessed fault.
    Attempts that never reached their target, or without a known duration, are at the lower edge."""
    attempts_table, report = select_attempts(run), run.measures
    if not (attempts_table["duration_s"].notna() | ~attempts_table["left"]).any():
        is_empty = attempts_table.empty
        return draw_message(
            TITLE, "no call was made in this run" if is_empty else "no data: the log tells no call's duration"
        )
    met_count = attempts_table["met"].astype(bool).sum()
    note = (
        f"{describe_attempts(report.attempts.value)}; "
        f"{f'{met_count:,} met a fault' if met_count else describe_unmet(report)}"
    )
    disturbed = None if report.disturbance.unknown else report.disturbance.value
    if disturbed is not None:
        note += f"; {disturbed.said or 'the lab was disturbed'}: {count(disturbed.attempts, 'attempt')} left out"
    figure, axes = make_canvas(TITLE, note, height_in=4.8)
    scaled = scale_durations(axes, attempts_table["duration_s"].tolist(), axis="y")
    # ended_s counts from the run's begin, and the axis from its first trial's.
    first, last = attempts_table["ended_s"].min() - report.began_t, attempts_table["ended_s"].max() - report.began_t
    # or 1.0, since a chart needs a width, also if all ended at once.
    low, high = min(0.0, first), max(0.0, last) * 1.03 or 1.0
    for group in group_by_fault(attempts_table, report):
        group.scatter(
            axes,
            lambda a, share, aside: (
                a.ended_s - report.began_t + aside * MARK * (high - low), scaled.place(a.duration_s, share)
            ),
        )  # fmt: skip
    draw_deadlines(axes, report, axis="y")
    if disturbed is not None:
        spans = [(span.begin_s - report.began_t, span.lasted_s) for span in disturbed.spans]
        disturbance_label = f"the lab was disturbed ({disturbed.times:,})"
        _draw_band(axes, spans, disturbance_label, color=LAB, alpha=0.6)
    axes.set_xlim(low, high)
    axes.set_xlabel("time since the first trial began (s)")
    axes.set_ylabel(f"duration of the attempt (s{scaled.suffix})")
    draw_legend(figure, axes)
    return figure


def _draw_band(axes: Axes, spans: Sequence[tuple[float, float]], label: str, *, color: str, alpha: float) -> None:
    axes.broken_barh(
        spans, (0, 1), color=color, alpha=alpha, linewidth=0, zorder=0.4, label=label,
        transform=axes.get_xaxis_transform(),
    )  # fmt: skip
