"""The time from a fault to a right answer, per fault."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

from chaoslab.analysis.measures import mttr as measure
from chaoslab.analysis.measures.mttr import Ending, Incident
from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.base.durations import duration
from chaoslab.reports.charts.palette import INK, OUTCOMES, SLATE, of_run
from chaoslab.reports.charts.style import (
    POINTS,
    Scale,
    canvas,
    counted,
    crowded,
    legend,
    nothing,
    scale,
    short,
    spread,
    thin,
    unmet,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHAPES = {
    Ending.RETRY: ("o", "recovered by retry"),
    Ending.FALLBACK: ("s", "recovered by fallback"),
    Ending.LATE: ("^", "late, but right"),
    Ending.HARM: ("X", "recovered with harm"),
    Ending.CENSORED: (">", "never recovered (at least so long)"),
}
"""The shape of each ending. The colour is the fault's, except for harm, which has the same in every chart."""


def mttr(report: RunReport) -> Figure:
    """A row per fault, with a point per incident, open arrows for censored ones, and Kaplan–Meier's median with its
    interval."""
    found = report.recovery.value
    told = report.knows_faults
    title = "Time to recovery by fault"
    if not found.incidents:
        figure, axes = canvas(title)
        nothing(
            axes, f"no data: {_none(report)}" if told else "no data: the log does not tell when a failure was noticed"
        )
        return figure
    every = found.overall
    note = f"{counted(every.n, 'incident')}: {every.recovered:,} recovered, "
    note += f"{every.harmed:,} with harm, " if report.knows_effects else ""
    note += f"{every.censored:,} never"
    note += "" if told else "; inferred: the log tells of failures that were noticed, not of faults"
    kinds = Counter((i.fault, i.ending) for i in found.incidents)
    note += "; of the most frequent kinds not every point is drawn" if max(kinds.values()) > POINTS else ""
    if every.mean_s is not None:
        note += f"; mean of the recovered {duration(every.mean_s, 2)}"
        if every.mean_interval is not None:
            low, high = every.mean_interval.low, every.mean_interval.high
            note += f" (95 % interval {low:.2f}–{high:.2f} s)"
    if told and any(of.enough and of.since_notice_s is not None for of in found.by_fault.values()):
        note += "; repaired: by retry or fallback, in the mean from the end of the call that met the fault"
    figure, axes = canvas(title, note, height_in=2.4 + 0.55 * len(found.by_fault))
    rows = list(found.by_fault)
    scaled = scale(axes, [i.duration_s for i in found.incidents], axis="x")
    known = of_run(report, rows) if told else {}
    for row, fault in enumerate(rows):
        color = known[fault].color if fault in known else SLATE
        _points(axes, scaled, row, [i for i in found.incidents if i.fault == fault], color)
    for ending, (marker, label) in SHAPES.items():
        count = sum(kinds[fault, ending] for fault in rows)
        if count:
            color = OUTCOMES["harm"].color if ending is Ending.HARM else SLATE
            face = "none" if ending is Ending.CENSORED else color
            said = f"{label} ({count:,})"
            axes.scatter([], [], s=30, facecolors=face, edgecolors=color, marker=marker, label=said)
    marked = False
    for row, fault in enumerate(rows):
        recovery = found.by_fault[fault]
        marked = _median(axes, scaled, row, recovery, marked=marked) or marked
        axes.text(1.01, row, _said(recovery, told=told), transform=axes.get_yaxis_transform(), va="center", fontsize=9)
    axes.set_yticks(range(len(rows)), [f"{short(fault)} ({found.by_fault[fault].n:,})" for fault in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    opening = "fault's beginning" if told else "noticed failure"
    axes.set_xlabel(f"time from the {opening} to that request's right answer (s{scaled.suffix})")
    axes.grid(visible=False, axis="y")
    legend(figure, axes)
    return figure


def _none(report: RunReport) -> str:
    met = report.errors.value.met > 0
    return "no fault was met from which an agent could recover" if met else unmet(report)


def _points(axes: Axes, scaled: Scale, row: int, mine: list[Incident], color: str) -> None:
    placed = list(zip(mine, spread(len(mine)), strict=True))
    for ending, (marker, _) in SHAPES.items():
        shown, _ = thin([(i.duration_s, row + offset) for i, offset in placed if i.ending is ending])
        size, width = crowded(40 if marker == "X" else 30, len(shown))
        edge = OUTCOMES["harm"].color if ending is Ending.HARM else color
        axes.scatter(
            scaled.places(x for x, _ in shown),
            [y for _, y in shown],
            s=size,
            facecolors="none" if ending is Ending.CENSORED else edge,
            edgecolors=edge if ending is Ending.CENSORED else "white",
            linewidths=max(width, 0.8) if ending is Ending.CENSORED else width,
            marker=marker,
            clip_on=False,
        )


def _median(axes: Axes, scaled: Scale, row: int, recovery: measure.Recovery, *, marked: bool) -> bool:
    if recovery.median is None:
        return False
    low, high = recovery.median.interval.low, recovery.median.interval.high
    right = axes.get_xlim()[1] if math.isinf(high) else scaled.place(high)
    axes.plot([scaled.place(low), right], [row, row], color=INK, linewidth=1.2, zorder=3)
    median = scaled.place(recovery.median.value)
    label = "" if marked else "Kaplan–Meier median, 95 % interval"
    axes.plot([median] * 2, [row - 0.34, row + 0.34], color=INK, linewidth=2.4, zorder=4, label=label)
    return True


def _said(recovery: measure.Recovery, *, told: bool) -> str:
    if not recovery.enough:
        line = f"{counted(recovery.n, 'fault')}: too few"
    else:
        line = f"median {duration(recovery.median.value, 2)}" if recovery.median else "median not reached"
    if told and recovery.enough and recovery.since_notice_s is not None:
        line += f"\n{recovery.retry + recovery.fallback:,} repaired in {duration(recovery.since_notice_s, 2)}"
    return line
