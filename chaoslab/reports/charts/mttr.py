"""How long it took to get from a fault to a right answer, fault by fault."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from chaoslab.events import FaultWitnessed
from chaoslab.history import History
from chaoslab.measures import mttr as measure
from chaoslab.measures.durations import duration
from chaoslab.measures.mttr import Ending
from chaoslab.reports.charts.style import (
    BLUE,
    GREEN,
    ORANGE,
    PURPLE,
    VERMILION,
    canvas,
    legend,
    nothing,
    scale,
    short,
    spread,
    unmet,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LOOKS = {
    Ending.RETRY: (BLUE, "o", "recovered by retry"),
    Ending.FALLBACK: (ORANGE, "s", "recovered by fallback"),
    Ending.LATE: (GREEN, "^", "late, but right"),
    Ending.HARM: (PURPLE, "X", "recovered with harm (an effect twice)"),
    Ending.CENSORED: (VERMILION, ">", "never recovered (at least so long)"),
}


def mttr(history: History) -> Figure:
    """A row per fault: every incident a point, censored ones as open arrows, Kaplan–Meier's median with its interval."""
    found = measure.mttr(history)
    told = history.tells(FaultWitnessed)
    title = "Time to recovery by fault"
    if not found.incidents:
        figure, axes = canvas(title)
        nothing(axes, f"no data: {unmet(history) if told else 'the log does not tell when a failure was noticed'}")
        return figure
    every = found.overall
    note = f"{every.n} incident{'' if every.n == 1 else 's'}: {every.recovered} recovered, {every.harmed} with harm, {every.censored} never"
    note += "" if told else "; inferred: the log tells of failures that were noticed, not of faults"
    figure, axes = canvas(title, note, height_in=2.4 + 0.55 * len(found.by_fault))
    rows = list(found.by_fault)
    floor = 1e-4
    for ending, (color, marker, label) in LOOKS.items():
        xs, ys = [], []
        for row, fault in enumerate(rows):
            mine = [i for i in found.incidents if i.fault == fault]
            for incident, offset in zip(mine, spread(len(mine)), strict=True):
                if incident.ending is ending:
                    xs.append(max(incident.duration_s, floor))
                    ys.append(row + offset)
        face = "none" if ending is Ending.CENSORED else color
        if xs:
            axes.scatter(xs, ys, s=30, facecolors=face, edgecolors=color, marker=marker, label=f"{label} ({len(xs)})")
    logarithmic = scale(axes, [max(i.duration_s, floor) for i in found.incidents], axis="x")
    marked = False
    for row, fault in enumerate(rows):
        recovery = found.by_fault[fault]
        if recovery.median:
            low, high = recovery.median.interval.low, recovery.median.interval.high
            right = axes.get_xlim()[1] if math.isinf(high) else high
            label = "" if marked else "Kaplan–Meier median, 95 % interval"
            marked = True
            axes.plot([max(low, floor), right], [row, row], color="#000000", linewidth=1.2, zorder=3)
            median = max(recovery.median.value, floor)
            axes.plot([median] * 2, [row - 0.34, row + 0.34], color="#000000", linewidth=2.4, zorder=4, label=label)
        axes.text(1.01, row, _said(recovery), transform=axes.get_yaxis_transform(), va="center", fontsize=9)
    axes.set_yticks(range(len(rows)), [f"{short(fault)} ({found.by_fault[fault].n})" for fault in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    opening = "fault's beginning" if told else "noticed failure"
    axes.set_xlabel(f"time from the {opening} to that request's right answer (s{logarithmic})")
    axes.grid(visible=False, axis="y")
    legend(figure, axes)
    return figure


def _said(recovery: measure.Recovery) -> str:
    if not recovery.enough:
        return f"{recovery.n} fault{'' if recovery.n == 1 else 's'}: too few"
    return f"median {duration(recovery.median.value, 2)}" if recovery.median else "median not reached"
