"""The outcomes of the trials."""

from chaoslab.reports._types import Figure
from chaoslab.reports.charts._palette import INK, OUTCOMES
from chaoslab.reports.charts._style import draw_message, make_canvas, name_rows
from chaoslab.reports.frames import Frames

FEW = 8


def success_rate(run: Frames) -> Figure:
    """A bar per outcome: its share of all trials, with a 95 % interval."""
    success, rates = run.measures.success.value, run.outcomes
    if rates.empty:
        return draw_message("Success rate by outcome", "no trial was started in this run")
    ended_rate = success.ended_rate
    if ended_rate is None:
        note = "of no trial anything can be concluded, so none was judged"
    else:
        low, high = ended_rate.interval.low, ended_rate.interval.high
        note = (
            f"{ended_rate.count:,} of {ended_rate.total:,} judged trials ended well: "
            f"{_format_percent(ended_rate.value)}"
        )
        note += f", 95 % interval {low:.0%} to {high:.0%}"
        note += f" over prompts like these {ended_rate.prompts}" if ended_rate.prompts > 1 else ""
        note += "; few trials, so the interval is wide" if ended_rate.total < FEW else ""
    note += f"; {success.ended.open:,} open" if success.ended.open else ""
    figure, axes = make_canvas("Success rate by outcome", note)
    names = list(OUTCOMES)
    for row, name in enumerate(names):
        count_text = "none"
        for share in rates[rates["outcome"] == name].itertuples():
            count_text = f"{share.trials:,} of {success.total:,} ({_format_percent(share.share)})"
            axes.barh(row, share.share, color=OUTCOMES[name].color, height=0.6)
            ends = [share.low, share.high]
            # A white line below, so that the interval is seen on a dark bar too.
            axes.plot(ends, [row, row], color="white", linewidth=4, solid_capstyle="butt")
            axes.plot(ends, [row, row], color=INK, marker="|", linewidth=1.3, clip_on=False)
        axes.text(1.02, row, count_text, transform=axes.get_yaxis_transform(), va="center", fontsize=9)
    name_rows(axes, names)
    axes.set_xlim(0, 1)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value * 100:.0f}")
    axes.set_xlabel("share of all trials (%), line: 95 % interval")
    return figure


def _format_percent(share: float) -> str:
    """A share in percent. It reads as 0 or 1 only if it is exactly that."""
    # 0 % and 100 % are said of nothing but none and all.
    if 0 < share < 0.01 or 0.99 < share < 1:
        return "above 99.9%" if share > 0.9995 else "below 0.1%" if share < 0.0005 else f"{share:.1%}"
    return f"{share:.0%}"
