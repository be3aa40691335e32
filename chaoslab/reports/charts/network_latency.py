"""The duration of each attempt over time, with the faults they met."""

from collections.abc import Sequence

from chaoslab.reports._types import Axes, Figure
from chaoslab.reports.charts._marks import MARK, attempts, deadlines, groups, said
from chaoslab.reports.charts._palette import LAB
from chaoslab.reports.charts._style import canvas, legend, nothing, scale, unmet
from chaoslab.reports.frames import Frames
from chaoslab.reports.page import count

TITLE = "Network latency of each attempt"


def network_latency(run: Frames) -> Figure:
    """A point per attempt, with a colour and a shape for each witnessed fault.
    Attempts that never reached their target, or without a known duration, are at the lower edge."""
    found, report = attempts(run), run.measures
    if not (found["duration_s"].notna() | ~found["left"]).any():
        none = found.empty
        return nothing(TITLE, "no call was made in this run" if none else "no data: the log tells no call's duration")
    met = found["met"].astype(bool).sum()
    note = f"{said(report.attempts.value)}; {f'{met:,} met a fault' if met else unmet(report)}"
    disturbed = None if report.disturbance.unknown else report.disturbance.value
    if disturbed is not None:
        note += f"; {disturbed.said or 'the lab was disturbed'}: {count(disturbed.attempts, 'attempt')} left out"
    figure, axes = canvas(TITLE, note, height_in=4.8)
    scaled = scale(axes, found["duration_s"].tolist(), axis="y")
    first, last = found["ended_s"].min() - report.began_t, found["ended_s"].max() - report.began_t
    low, high = min(0.0, first), max(0.0, last) * 1.03 or 1.0
    for group in groups(found, report):
        group.scatter(
            axes,
            lambda a, share, aside: (
                a.ended_s - report.began_t + aside * MARK * (high - low), scaled.place(a.duration_s, share)
            ),
        )  # fmt: skip
    deadlines(axes, report, axis="y")
    if disturbed is not None:
        spans = [(span.begin_s - report.began_t, span.lasted_s) for span in disturbed.spans]
        said_so = f"the lab was disturbed ({disturbed.times:,})"
        _band(axes, spans, said_so, color=LAB, alpha=0.6)
    axes.set_xlim(low, high)
    axes.set_xlabel("time since the first trial began (s)")
    axes.set_ylabel(f"duration of the attempt (s{scaled.suffix})")
    legend(figure, axes)
    return figure


def _band(axes: Axes, spans: Sequence[tuple[float, float]], said: str, *, color: str, alpha: float) -> None:
    axes.broken_barh(
        spans, (0, 1), color=color, alpha=alpha, linewidth=0, zorder=0.4, label=said,
        transform=axes.get_xaxis_transform(),
    )  # fmt: skip
