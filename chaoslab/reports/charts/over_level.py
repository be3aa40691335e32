"""The share of trials that pass over the level of chaos."""

from collections.abc import Sequence

from chaoslab.core.levels import chance_of
from chaoslab.reports._types import Figure
from chaoslab.reports.charts._palette import series
from chaoslab.reports.charts._style import canvas, legend, nothing
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
        (color, marker), style = series(number)
        aside = 0.12 * (number - (len(lines) - 1) / 2) / len(lines)
        shares = [share for _, share in line.points]
        axes.errorbar(
            [levels.index(level) + aside for level, _ in line.points],
            [share.value for share in shares],
            yerr=[[s.value - s.interval.low for s in shares], [s.interval.high - s.value for s in shares]],
            color=color,
            marker=marker,
            linestyle=style,
            capsize=4,
            clip_on=False,
            label=f"{line.label or 'all runs together'} ({sum(share.total for share in shares):,})",
        )
    axes.set_xticks(range(len(levels)), [f"{level:g}\n{chance_of(level) * 100:g} %" for level in levels])
    axes.set_xlim(-0.3, len(levels) - 0.7)
    axes.set_ylim(-0.03, 1.03)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value * 100:.0f}")
    axes.set_xlabel("level of chaos (below it: calls that meet a fault)")
    axes.set_ylabel(f"{passed}, of the judged (%)")
    legend(figure, axes)
    return figure
