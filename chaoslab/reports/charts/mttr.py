"""The time from a fault to a right answer, per fault."""

import math

from chaoslab.analysis.measures.intervals import Estimate
from chaoslab.analysis.measures.mttr import Ending, Recovery
from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.base.durations import duration
from chaoslab.reports._types import Axes, DataFrame, Figure
from chaoslab.reports.charts._palette import INK, OUTCOMES, SLATE, of_run
from chaoslab.reports.charts._style import (
    POINTS,
    DurationAxis,
    canvas,
    crowded,
    legend,
    nothing,
    rows_named,
    scale,
    short,
    spread,
    thin,
    unmet,
)
from chaoslab.reports.frames import Frames
from chaoslab.reports.page import count

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
        return nothing(title, f"no data: {_none(report)}")
    every, by_fault = report.recovery.value.overall, report.recovery.value.by_fault
    note = f"{count(every.n, 'incident')}: {every.recovered:,} recovered, "
    note += f"{every.harmed:,} with harm, {every.never:,} never"
    note += f", {every.censored:,} cut short" if every.censored else ""
    most = incidents.value_counts(["fault", "ending"]).max()
    note += "; of the most frequent kinds not every point is drawn" if most > POINTS else ""
    if every.mean_s is not None:
        note += f"; mean of the recovered {duration(every.mean_s, 2)}"
        if every.mean_interval is not None:
            low, high = every.mean_interval.low, every.mean_interval.high
            note += f" (95 % interval {low:.2f}–{high:.2f} s)"
    if any(of.enough and of.since_notice_s is not None for of in by_fault.values()):
        note += "; repaired: by retry or fallback, in the mean from the end of the call that met the fault"
    figure, axes = canvas(title, note, height_in=2.4 + 0.55 * len(by_fault))
    rows = [*by_fault]
    scaled = scale(axes, incidents["duration_s"].tolist(), axis="x")
    known = of_run(report, rows)
    for row, fault in enumerate(rows):
        color = known[fault].color
        _points(axes, scaled, row, incidents[incidents["fault"] == fault], color)
    for ending, (marker, label) in SHAPES.items():
        if number := (incidents["ending"] == ending).sum():
            color = OUTCOMES["harm"].color if ending is Ending.HARM else SLATE
            face = "none" if ending in OPEN else color
            said = f"{label} ({number:,})"
            axes.scatter([], [], s=30, facecolors=face, edgecolors=color, marker=marker, label=said)
    marked = False
    for row, of in enumerate(by_fault.values()):
        marked = _median(axes, scaled, row, of.median, marked=marked) or marked
        axes.text(1.01, row, _said(of), transform=axes.get_yaxis_transform(), va="center", fontsize=9)
    labels = [f"{short(fault)} ({of.n:,})" for fault, of in by_fault.items()]
    rows_named(axes, labels)
    axes.set_xlabel(f"time from the fault's beginning to that request's right answer (s{scaled.suffix})")
    legend(figure, axes)
    return figure


def _none(report: RunReport) -> str:
    met = report.errors.value.met > 0
    return "no fault was met from which an agent could recover" if met else unmet(report)


def _points(axes: Axes, scaled: DurationAxis, row: int, mine: DataFrame, color: str) -> None:
    placed = mine.assign(y=[row + offset for offset in spread(len(mine))])
    for ending, (marker, _) in SHAPES.items():
        shown, _ = thin(placed[placed["ending"] == ending])
        size, width = crowded(40 if marker == "X" else 30, len(shown))
        edge = OUTCOMES["harm"].color if ending is Ending.HARM else color
        axes.scatter(
            scaled.places(shown["duration_s"]),
            shown["y"].tolist(),
            s=size,
            facecolors="none" if ending in OPEN else edge,
            edgecolors=edge if ending in OPEN else "white",
            linewidths=max(width, 0.8) if ending in OPEN else width,
            marker=marker,
            clip_on=False,
        )


def _median(axes: Axes, scaled: DurationAxis, row: int, of: Estimate | None, *, marked: bool) -> bool:
    if of is None:
        return False
    low, high = of.interval.low, of.interval.high
    right = axes.get_xlim()[1] if math.isinf(high) else scaled.place(high)
    axes.plot([scaled.place(low), right], [row, row], color=INK, linewidth=1.2, zorder=3)
    label = "" if marked else "Kaplan–Meier median, 95 % interval"
    axes.plot([scaled.place(of.value)] * 2, [row - 0.34, row + 0.34], color=INK, linewidth=2.4, zorder=4, label=label)
    return True


def _said(of: Recovery) -> str:
    if not of.enough:
        return f"{count(of.n, 'fault')}: too few"
    line = f"median {duration(of.median.value, 2)}" if of.median else "median not reached"
    if of.since_notice_s is not None:
        line += f"\n{of.retry + of.fallback:,} repaired in {duration(of.since_notice_s, 2)}"
    return line
