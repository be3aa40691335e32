"""Charts of several runs against a setting in which they differ, or over their level of chaos. Runs that differ in more
than that have a line each."""

import math
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any

from chaoslab.analysis.measures.intervals import Estimate, mean_interval
from chaoslab.analysis.measures.mttr import Ending, Incident, Recovery, recovery
from chaoslab.core.levels import chance_of
from chaoslab.reports._types import Axes, DataFrame, Figure
from chaoslab.reports.charts._palette import SLATE, series
from chaoslab.reports.charts._style import canvas, legend, nothing, shares_up, short, with_bars
from chaoslab.reports.charts.series import Axis, Series, level_in
from chaoslab.reports.levels import PassRate, Run, axis, rate_well
from chaoslab.reports.page import count

NAMED = 5
"""The most points of a line whose counts are listed one by one."""
NEAR = 0.04
"""Points nearer than this share of the axis have one common note."""


def success_against(found: Sequence[Series], axis: Axis) -> Figure:
    """The share of correct trials: an open point per run, and the runs of one line and one level together with their
    interval, whose unit is the prompt."""
    runs = _all(found)
    judged = sum(run.get("judged", 0) for run in runs)
    note = f"{count(len(runs), 'run')}, {count(judged, 'judged trial')}; bars: 95 % interval over prompts"
    if not judged:
        return nothing(f"Success against {axis.name}", "no trial could be judged in these runs")
    figure, axes = canvas(f"Success against {axis.name}", note + _apart(found, axis), height_in=4.6)
    shift = _shifts(found, axis)
    for number, line in enumerate(found):
        _success(axes, line, axis, number=number, aside=shift(number))
    if any(len(line.runs) > len(_places([line], axis)) for line in found):
        axes.scatter([], [], s=90, facecolors="none", edgecolors=SLATE, marker="o", label="one run")
    shares_up(axes, "correct, of the judged trials")
    _along(figure, axes, axis)
    return figure


def _success(axes: Axes, line: Series, axis: Axis, *, number: int, aside: float) -> None:
    """Draws one line, and each of its runs if there are several at one level."""
    label = line.label or "all runs together"
    alone = [(axis.place(run), one.value) for run in line.runs if (one := rate_well([run]))]
    pooled = {}
    for place in _places([line], axis):
        if rate := rate_well(run for run in line.runs if axis.place(run) == place):
            pooled[place] = rate
    points = [(prob + aside, rate.value, rate.interval.low, rate.interval.high) for prob, rate in pooled.items()]
    n = f", n = {_each([rate.total for rate in pooled.values()])}" if pooled else ": none judged"
    with_bars(axes, points, series(number), f"{label}{n}")
    if len(alone) > len(pooled):
        xs, ys = [prob + aside for prob, _ in alone], [value for _, value in alone]
        axes.scatter(xs, ys, s=90, facecolors="none", edgecolors=series(number)[0].color, marker="o", zorder=2)


def mttr_against(found: Sequence[Series], axis: Axis, incidents: DataFrame) -> Figure:
    """Kaplan–Meier's median and the mean of the recovered, with intervals, if there are enough incidents."""
    met: dict[str, list[Incident]] = {run["run"]: [] for run in _all(found)}
    for row in incidents.itertuples():
        met[row.run].append(_incident(row))
    every = recovery([incident for each in met.values() for incident in each])
    note = f"{count(len(met), 'run')}, {count(every.n, 'incident')}, {every.never:,} never recovered"
    note += f", {every.censored:,} cut short" if every.censored else ""
    note += f", {every.harmed:,} with harm" if every.harmed else ""
    note += "; filled: Kaplan–Meier median, open: mean of the recovered; bars: 95 % intervals"
    if not every.n:
        return nothing(
            f"Time to recovery against {axis.name}",
            "no data: no fault was met in these runs from which an agent could recover",
        )
    figure, axes = canvas(f"Time to recovery against {axis.name}", note + _apart(found, axis), height_in=4.8)
    shift = _shifts(found, axis)
    top = max(_recovery(axes, line, axis, met, number=n, aside=shift(n)) for n, line in enumerate(found))
    axes.set_ylim(-0.03 * (top or 1.0), top * 1.08 or 1.0)
    if len(found) == 1:
        _tell_few(axes, _known(found[0], axis, met), axis.span)
    axes.set_ylabel("time to recovery (s)")
    _along(figure, axes, axis)
    return figure


def _incident(row: Any) -> Incident:
    """The incident of a row of the table."""
    return Incident(
        trial=row.trial, target=row.target, request=row.request, fault=row.fault, injection="", opened_t=row.opened_s,
        duration_s=row.duration_s, ending=Ending(row.ending), noticed_after_s=row.detect_s, cut=row.cut,
    )  # fmt: skip


def _known(line: Series, axis: Axis, met: Mapping[str, list[Incident]]) -> dict[float, Recovery]:
    """The recovery at each level of a line."""
    pooled: dict[float, list[Incident]] = {}
    for run in line.runs:
        pooled.setdefault(axis.place(run), []).extend(met[run["run"]])
    return {prob: recovery(mine) for prob, mine in sorted(pooled.items())}


def _recovery(
    axes: Axes, line: Series, axis: Axis, met: Mapping[str, list[Incident]], *, number: int, aside: float
) -> float:
    """Draws one line; returns its highest point."""
    look = series(number)
    known = _known(line, axis, met)
    enough = {prob: one for prob, one in known.items() if one.enough}
    said = f"{line.label or 'all runs together'}, n = {_each([one.n for one in enough.values()])}"
    if line.label and len(enough) < len(known):
        few = ", ".join(axis.level(prob) for prob, one in known.items() if not one.enough)
        said = f"{said}; too few at {few}" if enough else f"{line.label}: too few faults"
    top = 0.0
    for of, side in ((_median, -0.004), (_mean, 0.004)):
        drawn = [
            (prob + aside + side * axis.span, each.value, min(each.value, each.interval.low), _high(each, one))
            for prob, one in enough.items()
            if (each := of(one))
        ]
        top = max([top, *(high for *_, high in drawn)])
        if of is _median:
            with_bars(axes, drawn, look, said if enough or line.label else "", linewidth=1.4)
        else:
            with_bars(axes, drawn, look, "", linestyle="", linewidth=0.9, markerfacecolor="white")
    return top


def _median(known: Recovery) -> Estimate | None:
    return known.median


def _mean(known: Recovery) -> Estimate | None:
    if known.mean_s is None or known.mean_interval is None:
        return None
    return Estimate(known.mean_s, known.mean_interval)


def _high(estimate: Estimate, known: Recovery) -> float:
    """The end of the interval, or the longest observed time if it is unbounded."""
    high = estimate.interval.high
    return max(estimate.value, known.horizon_s or 0.0) if math.isinf(high) else max(estimate.value, high)


def _tell_few(axes: Axes, known: Mapping[float, Recovery], span: float) -> None:
    """Marks the places with too few faults for an estimate; places near each other have one common note."""
    notes: list[tuple[float, list[str]]] = []
    for prob, one in known.items():
        if not one.enough:
            if not notes or prob - notes[-1][0] > NEAR * span:
                notes.append((prob, []))
            notes[-1][1].append(f"{count(one.n, 'fault')}: too few" if one.n else "no data")
    style: dict[str, Any] = {"rotation": 90, "ha": "center", "va": "bottom", "fontsize": 9, "color": "#444444"}
    for prob, said in notes:
        text = said[0] if len(said) == 1 else f"{len(said)} places: too few"
        axes.text(prob, 0.05, text, transform=axes.get_xaxis_transform(), **style)


def _each(numbers: Sequence[int]) -> str:
    """The counts at the points of a line, as text."""
    if len(numbers) <= NAMED:
        return ", ".join(f"{number:,}" for number in numbers)
    return f"{min(numbers):,} to {max(numbers):,}"


def _apart(found: Sequence[Series], axis: Axis) -> str:
    lines = f"{len(found)} lines, moved a little aside"
    return f"; the runs differ in more than {axis.name}: {lines}" if len(found) > 1 else ""


def _all(found: Sequence[Series]) -> list[Run]:
    return [run for line in found for run in line.runs]


def _places(found: Sequence[Series], axis: Axis) -> list[float]:
    return sorted({axis.place(run) for run in _all(found)})


def _shifts(found: Sequence[Series], axis: Axis) -> Callable[[int], float]:
    """The sideways shift of each line, so that points of several lines at one level do not overlap."""
    step = axis.span * min(0.02, 0.08 / len(found))
    return lambda number: (number - (len(found) - 1) / 2) * step


def _along(figure: Figure, axes: Axes, axis: Axis) -> None:
    margin = axis.span * 0.09
    axes.set_xlim(axis.places[0] - margin, axis.places[-1] + margin)
    if axis.even:
        _tick(axes, axis)
    axes.set_xlabel(short(axis.meaning, 100))
    legend(figure, axes)


def _tick(axes: Axes, axis: Axis) -> None:
    axes.set_xticks(axis.places, [short(level, max(6, 70 // len(axis.levels))) for level in axis.levels])


def time_against(found: Sequence[Series], axis: Axis, trials: DataFrame) -> Figure:
    """The mean duration of a trial, with its 95 % interval by Student's t."""
    known = trials[trials["duration_s"] >= 0]
    by_run = {name: of["duration_s"].tolist() for name, of in known.groupby("run")}
    ended: dict[str, list[float]] = {run["run"]: by_run.get(run["run"], []) for run in _all(found)}
    trials_ended = sum(map(len, ended.values()))
    note = f"{count(len(ended), 'run')}, {count(trials_ended, 'trial')} that ended; mean; bars: 95 % interval"
    if not trials_ended:
        return nothing(f"Time per trial against {axis.name}", "no trial ended in these runs")
    figure, axes = canvas(f"Time per trial against {axis.name}", note + _apart(found, axis), height_in=4.6)
    shift, top = _shifts(found, axis), 0.0
    for number, line in enumerate(found):
        places = {
            at: [s for run in line.runs if axis.place(run) == at for s in ended[run["run"]]]
            for at in _places([line], axis)
        }
        drawn = []
        for at, mean, sure in ((at, fmean(times), mean_interval(times)) for at, times in places.items() if times):
            low, high = (sure.low, sure.high) if sure else (mean, mean)
            drawn.append((at + shift(number), mean, low, high))
        n = _each([len(times) for times in places.values()])
        with_bars(axes, drawn, series(number), f"{line.label or 'all runs together'}, n = {n}")
        top = max([top, *(high for *_, high in drawn)])
    axes.set_ylim(-0.03 * top, top * 1.08 or 1.0)
    axes.set_ylabel("from question to answer (s)")
    _along(figure, axes, axis)
    return figure


def heat_map(runs: Sequence[Run], across: Axis, up: Axis) -> Figure:
    """The share of correct trials at each pair of levels, and the number of judged trials."""
    from matplotlib import colormaps

    note = "the share of correct trials, and the number of judged ones; empty: none was judged"
    height_in = 1.9 + 0.62 * len(up.levels)
    figure, axes = canvas(f"Success by {across.name} and {up.name}", note, height_in=height_in)
    colors = colormaps["cividis"]
    for x, level in enumerate(across.levels):
        for y, other in enumerate(up.levels):
            here = [run for run in runs if (level_in(run, across.name), level_in(run, up.name)) == (level, other)]
            if (rate := rate_well(here)) is None:
                continue
            axes.fill_between([x - 0.5, x + 0.5], y - 0.5, y + 0.5, color=colors(rate.value), linewidth=0)
            ink = "black" if rate.value > 0.55 else "white"
            said = f"{rate.value:.0%}\nof {rate.total:,}"
            axes.text(x, y, said, ha="center", va="center", fontsize=9, color=ink)
    axes.grid(visible=False)
    axes.set_xlim(-0.5, len(across.levels) - 0.5)
    axes.set_ylim(-0.5, len(up.levels) - 0.5)
    width = max(6, 70 // len(across.levels))
    axes.set_xticks(range(len(across.levels)), [short(level, width) for level in across.levels])
    axes.set_yticks(range(len(up.levels)), [short(level) for level in up.levels])
    axes.set_xlabel(short(across.meaning, 100))
    axes.set_ylabel(up.name)
    return figure


def pass_rate(lines: Sequence[PassRate], *, passed: str = "trials that pass") -> Figure:
    """A line per scenario or group of runs, with a point and its 95 % interval at each level. `passed`: the name
    of what is counted."""
    trials = sum(share.total for line in lines for _, share in line.points)
    note = f"{trials:,} judged trials; bars: 95 % interval over prompts"
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
