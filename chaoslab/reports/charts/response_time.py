"""The duration of each trial from question to answer."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

from chaoslab.analysis.measures.quantiles import percentile
from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.base.durations import duration
from chaoslab.reports.charts.marks import SIZES
from chaoslab.reports.charts.palette import INK, OUTCOMES, SLATE
from chaoslab.reports.charts.style import canvas, counted, crowded, legend, nothing, scale, thin
from chaoslab.reports.contents.outcomes import contrast

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PALE = 2.0
"""A colour of less contrast than this to the paper gets a dark edge."""


def response_time(report: RunReport) -> Figure:
    """A point per trial in the order started, by outcome, with the median as a line."""
    from matplotlib.ticker import MaxNLocator

    ended, outcomes = report.responses.value, report.outcomes
    places = {response.trial: response.place for response in ended}
    found = [(r.trial, r.duration_s) for r in ended if not math.isnan(r.duration_s)]
    if not found:
        figure, axes = canvas("Response time per trial")
        nothing(axes, "no data: the log tells no trial's duration" if ended else "no trial was answered in this run")
        return figure
    durations = [duration_s for _, duration_s in found]
    middle = percentile(durations, 0.5)
    note = f"{counted(len(found), 'trial')}: median {duration(middle, 2)}"
    note += f", 90th percentile {duration(percentile(durations, 0.9), 2)}, longest {duration(max(durations), 2)}"
    figure, axes = canvas("Response time per trial", note)
    scaled = scale(axes, durations, axis="y")
    ranked = [outcome for outcome, _ in Counter(outcomes.get(trial, "") for trial, _ in found).most_common()]
    at_once = {outcomes.get(trial, "") for trial, duration_s in found if duration_s <= 0}
    present = [outcome for outcome in OUTCOMES if outcome in at_once]
    for outcome, (color, marker) in OUTCOMES.items():
        mine = [(places[trial], duration_s) for trial, duration_s in found if outcomes.get(trial) == outcome]
        if mine:
            shown, thinned = thin(mine)
            share = 1 - (present.index(outcome) + 0.5) / len(present) if outcome in at_once else 0.5
            size, edge = crowded(SIZES.get(marker, 34), len(shown))
            axes.scatter(
                [x for x, _ in shown],
                [scaled.place(y, share) for _, y in shown],
                s=size,
                color=color,
                marker=marker,
                edgecolors=SLATE if contrast(color, "#ffffff") < PALE else "white",
                linewidths=edge,
                zorder=2 + ranked.index(outcome) / 100,
                clip_on=False,
                label=f"{outcome} ({len(mine):,}{thinned})",
            )
    axes.axhline(scaled.place(middle), color=INK, linewidth=1, linestyle="--", label="median")
    last = len(report.trials)
    axes.set_xlim(1 - 0.02 * last - 0.5, last + 0.02 * last + 0.5)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    axes.set_xlabel("trial, in the order started (number)")
    axes.set_ylabel(f"response time (s{scaled.suffix})")
    legend(figure, axes)
    return figure
