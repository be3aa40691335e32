"""Charts of several runs against a setting in which they differ, or over their level of chaos. Runs that differ in more
than that have a line each."""

import math
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any

from chaoslab.analysis.measures.intervals import Estimate, mean_interval
from chaoslab.analysis.measures.mttr import Ending, Incident, Recovery, summarize_recovery
from chaoslab.core.levels import level_to_chance
from chaoslab.reports._types import Axes, DataFrame, Figure
from chaoslab.reports.charts._palette import SLATE, get_series_style
from chaoslab.reports.charts._style import (
    draw_error_bar_line,
    draw_legend,
    draw_message_figure,
    make_figure,
    set_percent_axis,
    shorten_label,
)
from chaoslab.reports.charts.series import Series, SettingAxis, get_setting_text
from chaoslab.reports.contents._parts import describe_recovery_counts
from chaoslab.reports.levels import PassRate, Run, compute_correct_rate, list_axis_levels
from chaoslab.reports.page import format_count

NAMED = 5
"""The most points of a line whose counts are listed one by one."""
NEAR = 0.04
"""Points nearer than this share of the axis have one common note."""


def draw_success_against(series: Sequence[Series], axis: SettingAxis) -> Figure:
    """The share of correct trials: an open point per run, and the runs of one line and one level together with their
    interval, whose unit is the prompt."""
    runs = _list_all_runs(series)
    judged = sum(run.get("judged", 0) for run in runs)
    note = f"{format_count(len(runs), 'run')}, {format_count(judged, 'judged trial')}; bars: 95 % interval over prompts"
    if not judged:
        return draw_message_figure(f"Success against {axis.name}", "no trial could be judged in these runs")
    figure, axes = make_figure(f"Success against {axis.name}", note + _describe_line_count(series, axis), height_in=4.6)
    shift = _make_shift_function(series, axis)
    for number, line in enumerate(series):
        _draw_success_line(axes, line, axis, number=number, aside=shift(number))
    # One run at each level lies on the point of its line.
    if any(len(line.runs) > len(_list_axis_positions([line], axis)) for line in series):
        axes.scatter([], [], s=90, facecolors="none", edgecolors=SLATE, marker="o", label="one run")
    set_percent_axis(axes, "correct, of the judged trials")
    _set_up_x_axis(figure, axes, axis)
    return figure


def _draw_success_line(axes: Axes, line: Series, axis: SettingAxis, *, number: int, aside: float) -> None:
    """Draws one line, and each of its runs if there are several at one level."""
    label = line.label or "all runs together"
    run_points = [
        (axis.get_position(run), run_rate.value) for run in line.runs if (run_rate := compute_correct_rate([run]))
    ]
    pooled = {}
    for position in _list_axis_positions([line], axis):
        if rate := compute_correct_rate(run for run in line.runs if axis.get_position(run) == position):
            pooled[position] = rate
    points = [(prob + aside, rate.value, rate.interval.low, rate.interval.high) for prob, rate in pooled.items()]
    n = f", n = {_format_counts([rate.total for rate in pooled.values()])}" if pooled else ": none judged"
    draw_error_bar_line(axes, points, get_series_style(number), f"{label}{n}")
    if len(run_points) > len(pooled):
        xs, ys = [prob + aside for prob, _ in run_points], [value for _, value in run_points]
        axes.scatter(
            xs, ys, s=90, facecolors="none", edgecolors=get_series_style(number)[0].color, marker="o", zorder=2
        )


def draw_mttr_against(series: Sequence[Series], axis: SettingAxis, incidents: DataFrame) -> Figure:
    """Kaplan–Meier's median and the mean of the recovered, with intervals, if there are enough incidents."""
    incidents_by_run: dict[str, list[Incident]] = {run["run"]: [] for run in _list_all_runs(series)}
    for row in incidents.itertuples():
        incidents_by_run[row.run].append(_row_to_incident(row))
    overall = summarize_recovery(
        [incident for run_incidents in incidents_by_run.values() for incident in run_incidents]
    )
    note = f"{format_count(len(incidents_by_run), 'run')}: {describe_recovery_counts(overall)}"
    note += "; filled: Kaplan–Meier median, open: mean of the recovered; bars: 95 % intervals"
    if not overall.n:
        return draw_message_figure(
            f"Time to recovery against {axis.name}",
            "no data: no fault was met in these runs from which an agent could recover",
        )
    figure, axes = make_figure(
        f"Time to recovery against {axis.name}", note + _describe_line_count(series, axis), height_in=4.8
    )
    shift = _make_shift_function(series, axis)
    top = max(
        _draw_recovery_line(axes, line, axis, incidents_by_run, number=n, aside=shift(n))
        for n, line in enumerate(series)
    )
    # or 1.0, since an axis needs a height.
    axes.set_ylim(-0.03 * (top or 1.0), top * 1.08 or 1.0)
    if len(series) == 1:
        _mark_sparse_levels(axes, _summarize_line_recovery(series[0], axis, incidents_by_run), axis.axis_length)
    axes.set_ylabel("time to recovery (s)")
    _set_up_x_axis(figure, axes, axis)
    return figure


def _row_to_incident(row: Any) -> Incident:
    """The incident of a row of the table."""
    return Incident(
        trial=row.trial,
        target=row.target,
        request=row.request,
        fault=row.fault,
        injection="",
        opened_t=row.opened_s,
        duration_s=row.duration_s,
        ending=Ending(row.ending),
        noticed_after_s=row.detect_s,
        cut=row.cut,
    )


def _summarize_line_recovery(
    line: Series, axis: SettingAxis, incidents_by_run: Mapping[str, list[Incident]]
) -> dict[float, Recovery]:
    """The recovery at each level of a line."""
    pooled: dict[float, list[Incident]] = {}
    for run in line.runs:
        pooled.setdefault(axis.get_position(run), []).extend(incidents_by_run[run["run"]])
    return {prob: summarize_recovery(level_incidents) for prob, level_incidents in sorted(pooled.items())}


def _draw_recovery_line(
    axes: Axes,
    line: Series,
    axis: SettingAxis,
    incidents_by_run: Mapping[str, list[Incident]],
    *,
    number: int,
    aside: float,
) -> float:
    """Draws one line; returns its highest point."""
    look = get_series_style(number)
    recovery_by_level = _summarize_line_recovery(line, axis, incidents_by_run)
    estimated = {
        prob: level_recovery for prob, level_recovery in recovery_by_level.items() if level_recovery.has_enough_data
    }
    label = (
        f"{line.label or 'all runs together'}, n = "
        f"{_format_counts([level_recovery.n for level_recovery in estimated.values()])}"
    )
    if line.label and len(estimated) < len(recovery_by_level):
        sparse_levels = ", ".join(
            axis.get_level(prob)
            for prob, level_recovery in recovery_by_level.items()
            if not level_recovery.has_enough_data
        )
        label = f"{label}; too few at {sparse_levels}" if estimated else f"{line.label}: too few faults"
    top = 0.0
    # Shifted a little: the two intervals would hide each other.
    for read_estimate, shift in ((_get_median, -0.004), (_get_mean, 0.004)):
        drawn = [
            (
                prob + aside + shift * axis.axis_length,
                estimate.value,
                # matplotlib refuses an interval that does not hold its value, if only by rounding.
                min(estimate.value, estimate.interval.low),
                _get_plotted_upper_end(estimate, level_recovery),
            )
            for prob, level_recovery in estimated.items()
            if (estimate := read_estimate(level_recovery))
        ]
        top = max([top, *(high for *_, high in drawn)])
        if read_estimate is _get_median:
            draw_error_bar_line(axes, drawn, look, label if estimated or line.label else "", linewidth=1.4)
        else:
            draw_error_bar_line(axes, drawn, look, "", linestyle="", linewidth=0.9, markerfacecolor="white")
    return top


def _get_median(level_recovery: Recovery) -> Estimate | None:
    return level_recovery.median


def _get_mean(level_recovery: Recovery) -> Estimate | None:
    if level_recovery.mean_s is None or level_recovery.mean_interval is None:
        return None
    return Estimate(level_recovery.mean_s, level_recovery.mean_interval)


def _get_plotted_upper_end(estimate: Estimate, level_recovery: Recovery) -> float:
    """The end of the interval, or the longest observed time if it is unbounded."""
    high = estimate.interval.high
    # To the longest time that was observed: there the curve ends.
    return max(estimate.value, level_recovery.horizon_s or 0.0) if math.isinf(high) else max(estimate.value, high)


def _mark_sparse_levels(axes: Axes, recovery_by_level: Mapping[float, Recovery], span: float) -> None:
    """Marks the places with too few faults for an estimate; places near each other have one common note."""
    notes: list[tuple[float, list[str]]] = []
    for prob, level_recovery in recovery_by_level.items():
        if not level_recovery.has_enough_data:
            if not notes or prob - notes[-1][0] > NEAR * span:
                notes.append((prob, []))
            notes[-1][1].append(
                f"{format_count(level_recovery.n, 'fault')}: too few" if level_recovery.n else "no data"
            )
    style: dict[str, Any] = {"rotation": 90, "ha": "center", "va": "bottom", "fontsize": 9, "color": "#444444"}
    for prob, messages in notes:
        text = messages[0] if len(messages) == 1 else f"{len(messages)} places: too few"
        axes.text(prob, 0.05, text, transform=axes.get_xaxis_transform(), **style)


def _format_counts(numbers: Sequence[int]) -> str:
    """The counts at the points of a line, as text."""
    if len(numbers) <= NAMED:
        return ", ".join(f"{number:,}" for number in numbers)
    return f"{min(numbers):,} to {max(numbers):,}"


def _describe_line_count(series: Sequence[Series], axis: SettingAxis) -> str:
    lines = f"{len(series)} lines, shifted a little"
    return f"; the runs differ in more than {axis.name}: {lines}" if len(series) > 1 else ""


def _list_all_runs(series: Sequence[Series]) -> list[Run]:
    return [run for line in series for run in line.runs]


def _list_axis_positions(series: Sequence[Series], axis: SettingAxis) -> list[float]:
    return sorted({axis.get_position(run) for run in _list_all_runs(series)})


def _make_shift_function(series: Sequence[Series], axis: SettingAxis) -> Callable[[int], float]:
    """The sideways shift of each line, so that points of several lines at one level do not overlap."""
    # Narrower the more lines there are, so that they stay nearer to their level than to the next.
    step = axis.axis_length * min(0.02, 0.08 / len(series))
    return lambda number: (number - (len(series) - 1) / 2) * step


def _set_up_x_axis(figure: Figure, axes: Axes, axis: SettingAxis) -> None:
    margin = axis.axis_length * 0.09
    axes.set_xlim(axis.places[0] - margin, axis.places[-1] + margin)
    if axis.even:
        axes.set_xticks(axis.places, [shorten_label(level, max(6, 70 // len(axis.levels))) for level in axis.levels])
    axes.set_xlabel(shorten_label(axis.description, 100))
    draw_legend(figure, axes)


def draw_duration_against(series: Sequence[Series], axis: SettingAxis, trials: DataFrame) -> Figure:
    """The mean duration of a trial, with its 95 % interval by Student's t."""
    # NA and NaN are not >= 0: such a trial did not end.
    timed_trials = trials[trials["duration_s"] >= 0]
    by_run = {name: run_trials["duration_s"].tolist() for name, run_trials in timed_trials.groupby("run")}
    ended: dict[str, list[float]] = {run["run"]: by_run.get(run["run"], []) for run in _list_all_runs(series)}
    trials_ended = sum(map(len, ended.values()))
    note = (
        f"{format_count(len(ended), 'run')}, {format_count(trials_ended, 'trial')} that ended; mean; bars: 95 % "
        "interval"
    )
    if not trials_ended:
        return draw_message_figure(f"Time per trial against {axis.name}", "no trial ended in these runs")
    figure, axes = make_figure(
        f"Time per trial against {axis.name}", note + _describe_line_count(series, axis), height_in=4.6
    )
    shift, top = _make_shift_function(series, axis), 0.0
    for number, line in enumerate(series):
        places = {
            position: [s for run in line.runs if axis.get_position(run) == position for s in ended[run["run"]]]
            for position in _list_axis_positions([line], axis)
        }
        drawn = []
        for position, mean, sure in (
            (position, fmean(times), mean_interval(times)) for position, times in places.items() if times
        ):
            # With few trials there is no interval, and a bar of no length stands for it.
            low, high = (sure.low, sure.high) if sure else (mean, mean)
            drawn.append((position + shift(number), mean, low, high))
        n = _format_counts([len(times) for times in places.values()])
        draw_error_bar_line(axes, drawn, get_series_style(number), f"{line.label or 'all runs together'}, n = {n}")
        top = max([top, *(high for *_, high in drawn)])
    axes.set_ylim(-0.03 * top, top * 1.08 or 1.0)
    axes.set_ylabel("from question to answer (s)")
    _set_up_x_axis(figure, axes, axis)
    return figure


def draw_success_heat_map(runs: Sequence[Run], across: SettingAxis, up: SettingAxis) -> Figure:
    """The share of correct trials at each pair of levels, and the number of judged trials."""
    from matplotlib import colormaps

    note = "the share of correct trials, and the number of judged ones; empty: none was judged"
    height_in = 1.9 + 0.62 * len(up.levels)
    figure, axes = make_figure(f"Success by {across.name} and {up.name}", note, height_in=height_in)
    # A scale that colour-blind people read, and that keeps its order in grey.
    colors = colormaps["cividis"]
    for x, level in enumerate(across.levels):
        for y, up_level in enumerate(up.levels):
            cell_runs = [
                run
                for run in runs
                if (get_setting_text(run, across.name), get_setting_text(run, up.name)) == (level, up_level)
            ]
            if (rate := compute_correct_rate(cell_runs)) is None:
                continue
            axes.fill_between([x - 0.5, x + 0.5], y - 0.5, y + 0.5, color=colors(rate.value), linewidth=0)
            # The bright end of the scale needs dark letters.
            ink = "black" if rate.value > 0.55 else "white"
            cell_text = f"{rate.value:.0%}\nof {rate.total:,}"
            axes.text(x, y, cell_text, ha="center", va="center", fontsize=9, color=ink)
    axes.grid(visible=False)
    axes.set_xlim(-0.5, len(across.levels) - 0.5)
    axes.set_ylim(-0.5, len(up.levels) - 0.5)
    width = max(6, 70 // len(across.levels))
    axes.set_xticks(range(len(across.levels)), [shorten_label(level, width) for level in across.levels])
    axes.set_yticks(range(len(up.levels)), [shorten_label(level) for level in up.levels])
    axes.set_xlabel(shorten_label(across.description, 100))
    axes.set_ylabel(up.name)
    return figure


def draw_pass_rate(lines: Sequence[PassRate], *, passed: str = "trials that pass") -> Figure:
    """A line per scenario or group of runs, with a point and its 95 % interval at each level. `passed`: the name
    of what is counted."""
    trials = sum(share.total for line in lines for _, share in line.points)
    note = f"{trials:,} judged trials; bars: 95 % interval over prompts"
    if not trials:
        return draw_message_figure("Pass rate over the level of chaos", "no trial could be judged in these runs")
    figure, axes = make_figure("Pass rate over the level of chaos", note, height_in=4.6)
    levels = list_axis_levels(lines)
    for number, line in enumerate(lines):
        offset = 0.12 * (number - (len(lines) - 1) / 2) / len(lines)
        points = [
            (levels.index(level) + offset, share.value, share.interval.low, share.interval.high)
            for level, share in line.points
        ]
        label = f"{line.label or 'all runs together'} ({sum(share.total for _, share in line.points):,})"
        draw_error_bar_line(axes, points, get_series_style(number), label, clip_on=False)
    axes.set_xticks(range(len(levels)), [f"{level:g}\n{level_to_chance(level) * 100:g} %" for level in levels])
    axes.set_xlim(-0.3, len(levels) - 0.7)
    axes.set_xlabel("level of chaos (below it: calls that meet a fault)")
    set_percent_axis(axes, f"{passed}, of the judged")
    draw_legend(figure, axes)
    return figure
