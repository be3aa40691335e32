"""The duration of each trial from question to answer."""

from chaoslab.analysis.measures.quantiles import percentile
from chaoslab.base.durations import duration
from chaoslab.reports._types import Figure
from chaoslab.reports.charts._marks import SIZES
from chaoslab.reports.charts._palette import INK, OUTCOMES, SLATE
from chaoslab.reports.charts._style import canvas, crowded, legend, nothing, scale, thin
from chaoslab.reports.contents.outcomes import contrast
from chaoslab.reports.frames import Frames
from chaoslab.reports.page import count

PALE = 2.0
"""A colour of less contrast than this to the paper gets a dark edge."""


def response_time(run: Frames) -> Figure:
    """A point per trial in the order started, by outcome, with the median as a line."""
    from matplotlib.ticker import MaxNLocator

    trials = run.trials
    found = trials[trials["duration_s"].notna()]
    if found.empty:
        ended = any(trial.ended for trial in run.measures.figures.value.rows)
        return nothing(
            "Response time per trial",
            "no data: the log tells no trial's duration" if ended else "no trial was answered in this run",
        )
    durations = found["duration_s"].tolist()
    middle = percentile(durations, 0.5)
    note = f"{count(len(found), 'trial')}: median {duration(middle, 2)}"
    note += f", 90th percentile {duration(percentile(durations, 0.9), 2)}, longest {duration(max(durations), 2)}"
    figure, axes = canvas("Response time per trial", note)
    scaled = scale(axes, durations, axis="y")
    ranked = [*found["outcome"].value_counts().index]
    at_once = {*found.loc[found["duration_s"] <= 0, "outcome"]}
    present = [outcome for outcome in OUTCOMES if outcome in at_once]
    for outcome, (color, marker) in OUTCOMES.items():
        mine = found[found["outcome"] == outcome]
        if len(mine):
            shown, thinned = thin(mine)
            share = 1 - (present.index(outcome) + 0.5) / len(present) if outcome in at_once else 0.5
            size, edge = crowded(SIZES.get(marker, 34), len(shown))
            axes.scatter(
                shown.index + 1,
                [scaled.place(y, share) for y in shown["duration_s"]],
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
    last = len(trials)
    axes.set_xlim(1 - 0.02 * last - 0.5, last + 0.02 * last + 0.5)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    axes.set_xlabel("trial, in the order started (number)")
    axes.set_ylabel(f"response time (s{scaled.suffix})")
    legend(figure, axes)
    return figure
