"""The share of trials that pass over the level of chaos."""

from collections.abc import Sequence

from chaoslab.core.levels import chance_of
from chaoslab.reports._types import Figure
from chaoslab.reports.charts._palette import series
from chaoslab.reports.charts._style import canvas, legend, nothing, shares_up, with_bars
from chaoslab.reports.levels import PassRate, axis


def pass_rate(lines: Sequence[PassRate], *, passed: str = "trials that pass") -> Figure:
    """A line per scenario or group of runs, with a point and its 95 % Wilson interval at each level. `passed`: the name
    of what is counted."""
    trials = sum(share.total for line in lines for _, share in line.points)
    note = f"{trials:,} judged trials; bars: 95 % Wilson interval"
    if not trials:
        return nothing("Pass rate over the level of chaos", "no trial could be judged in these runs")
    figure, axes = canvas("Pass rate over the level of chaos", note, height_in=4.6)
    levels = axis(lines)
    for number, line in enumerate(lines):
        aside = 0.12 * (number - (len(lines) - 1) / 2) / len(lines)
        points = [
            (levels.index(level) + aside, share.value, share.interval.low, share.interval.high)
            for level, share in line.points
        ]
        label = f"{line.label or 'all runs together'} ({sum(share.total for _, share in line.points):,})"
        with_bars(axes, points, series(number), label, clip_on=False)
    axes.set_xticks(range(len(levels)), [f"{level:g}\n{chance_of(level) * 100:g} %" for level in levels])
    axes.set_xlim(-0.3, len(levels) - 0.7)
    axes.set_xlabel("level of chaos (below it: calls that meet a fault)")
    shares_up(axes, f"{passed}, of the judged")
    legend(figure, axes)
    return figure
