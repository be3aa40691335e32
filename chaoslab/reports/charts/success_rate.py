"""The outcomes of the trials."""

from chaoslab.reports._types import Figure
from chaoslab.reports.charts._palette import INK, OUTCOMES
from chaoslab.reports.charts._style import draw_message_figure, label_rows, make_figure
from chaoslab.reports.contents.headline import build_headline_figures
from chaoslab.reports.frames import Frames
from chaoslab.reports.page import format_percent


def success_rate(run: Frames) -> Figure:
    """A bar per outcome: its share of all trials, with a 95 % interval."""
    success, rates = run.measures.success.value, run.outcomes
    if rates.empty:
        return draw_message_figure("Success rate by outcome", "no trial was started in this run")
    figure, axes = make_figure("Success rate by outcome", build_headline_figures(run.measures)[0].said)
    names = list(OUTCOMES)
    for row, name in enumerate(names):
        count_text = "none"
        for share in rates[rates["outcome"] == name].itertuples():
            count_text = f"{share.trials:,} of {success.total:,} ({format_percent(share.share)})"
            axes.barh(row, share.share, color=OUTCOMES[name].color, height=0.6)
            ends = [share.low, share.high]
            # A white line below, so that the interval is seen on a dark bar too.
            axes.plot(ends, [row, row], color="white", linewidth=4, solid_capstyle="butt")
            axes.plot(ends, [row, row], color=INK, marker="|", linewidth=1.3, clip_on=False)
        axes.text(1.02, row, count_text, transform=axes.get_yaxis_transform(), va="center", fontsize=9)
    label_rows(axes, names)
    axes.set_xlim(0, 1)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value * 100:.0f}")
    axes.set_xlabel("share of all trials (%), line: 95 % interval")
    return figure
