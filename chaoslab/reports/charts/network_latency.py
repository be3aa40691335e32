"""How long each attempt took, when, and which of them met a fault."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chaoslab.events import FaultWitnessed
from chaoslab.history import History
from chaoslab.measures.durations import duration
from chaoslab.measures.latency import attempts, latency
from chaoslab.reports.charts.style import BLACK, CYCLE, GREY, MARKERS, canvas, legend, nothing, scale, short, unmet

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def network_latency(history: History) -> Figure:
    """A point per attempt; the witnessed faults have a colour and a shape each."""
    found = attempts(history)
    told = history.tells(FaultWitnessed)
    figures = latency([a.duration_s for a in found])
    if figures is None:
        figure, axes = canvas("Network latency of each attempt")
        nothing(axes, "no call left the agent in this run" if told else "no data: the log tells no call's duration")
        return figure
    met = sum(bool(a.faults) for a in found)
    note = f"{figures.n} attempts: median {duration(figures.p50_s)}, 99th percentile {duration(figures.p99_s)}; "
    note += f"{met} met a fault" if met else unmet(history)
    figure, axes = canvas("Network latency of each attempt", note, height_in=4.8)
    clean = [a for a in found if not a.faults and a.ok]
    lone = [a for a in found if not a.faults and not a.ok]
    floor = 1e-4
    axes.scatter(
        [a.t for a in clean],
        [max(a.duration_s, floor) for a in clean],
        s=9,
        color=GREY,
        label=f"{'no fault' if told else 'answered'} ({len(clean)})",
    )
    for number, fault in enumerate(sorted({fault for a in found for fault in a.faults})):
        hit = [a for a in found if fault in a.faults]
        axes.scatter(
            [a.t for a in hit],
            [max(a.duration_s, floor) for a in hit],
            s=34,
            color=CYCLE[number % len(CYCLE)],
            marker=MARKERS[number % len(MARKERS)],
            edgecolors="white",
            linewidths=0.5,
            label=f"{short(fault)} ({len(hit)})",
        )
    if lone:
        axes.scatter(
            [a.t for a in lone],
            [max(a.duration_s, floor) for a in lone],
            s=40,
            color=BLACK,
            marker="x",
            label=f"failed{', nobody injected' if told else ''} ({len(lone)})",
        )
    axes.set_xlim(left=0)
    logarithmic = scale(axes, [max(a.duration_s, floor) for a in found], axis="y")
    axes.set_xlabel("time since the run began (s)")
    axes.set_ylabel(f"duration of the attempt (s{logarithmic})")
    legend(figure, axes)
    return figure
