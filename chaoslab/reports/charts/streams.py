"""The first and the last byte of each streamed reply."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from chaoslab.analysis.measures.latency import Attempt
from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.base.durations import duration
from chaoslab.reports.charts.marks import MARK, groups
from chaoslab.reports.charts.palette import CLEAN, SLATE
from chaoslab.reports.charts.style import canvas, counted, legend, nothing, scale, thin

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def _end(of: Attempt) -> float:
    """The time at which a reply was whole; of one that failed, when its caller gave it up: a stall lasts till then."""
    whole_s = of.last_byte_s or 0.0
    return whole_s if of.ok or math.isnan(of.duration_s) else max(whole_s, of.duration_s)


TITLE = "First and last byte of each streamed reply"


def streams(report: RunReport) -> Figure:
    """A line per streamed reply, from its first byte to its last, with a colour and a shape for each witnessed
    fault."""
    every = report.attempts.value
    found = [a for a in every.drawn if a.first_byte_s is not None]
    times = report.streamed.value
    if times is None:
        figure, axes = canvas(TITLE)
        nothing(axes, "no reply was streamed in this run (STREAM=on streams)")
        return figure
    first, last = times.first_byte, times.last_byte
    note = f"{counted(first.n, 'stream')}: "
    note += f"first byte after {duration(first.p50_s)} in the median, last byte after {duration(last.p50_s)}"
    note += "; a line leads from the one to the other, or to the end of a reply that never had its last"
    note += f"; {every.sample}" if every.sample else ""
    figure, axes = canvas(TITLE, note, height_in=4.8)
    scaled = scale(axes, [s for a in found for s in (a.first_byte_s or 0.0, _end(a))], axis="y")
    shown, _ = thin(found)
    xs = [a.t - report.began_t for a in shown]
    firsts = [scaled.place(a.first_byte_s or 0.0) for a in shown]
    low, high = min(0.0, *xs, 0.0), max(0.0, *xs, 0.0) * 1.03 or 1.0
    axes.vlines(xs, firsts, [scaled.place(_end(a)) for a in shown], color=CLEAN, linewidth=0.8, zorder=1)
    axes.scatter(xs, firsts, s=16, color=SLATE, marker="_", linewidths=1.2, zorder=1.5, clip_on=False)
    for group in groups(found, report, streamed=True):
        group.scatter(
            axes,
            lambda a, share, aside: (a.t - report.began_t + aside * MARK * (high - low), scaled.place(_end(a), share)),
        )
    axes.set_xlim(low, high)
    axes.set_xlabel("time since the first trial began (s)")
    axes.set_ylabel(f"since the attempt began (s{scaled.suffix})")
    legend(figure, axes)
    return figure
