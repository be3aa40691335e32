"""The first and the last byte of each streamed reply."""

from chaoslab.base.durations import duration
from chaoslab.reports._types import Figure
from chaoslab.reports.charts._marks import MARK, attempts, groups
from chaoslab.reports.charts._palette import CLEAN, SLATE
from chaoslab.reports.charts._style import canvas, legend, nothing, scale, thin
from chaoslab.reports.frames import Frames
from chaoslab.reports.page import count

TITLE = "First and last byte of each streamed reply"


def streams(run: Frames) -> Figure:
    """A line per streamed reply, from its first byte to its last, with a colour and a shape for each witnessed fault.
    The line of one that failed ends when its caller gave it up: a stall lasts till then."""
    report, found = run.measures, attempts(run).dropna(subset="first_token_s")
    times = report.streamed.value
    if times is None:
        return nothing(TITLE, "no reply was streamed in this run (STREAM=on streams)")
    first, last = times.first_byte, times.last_byte
    note = f"{count(first.n, 'stream')}: "
    note += f"first byte after {duration(first.p50_s)} in the median, last byte after {duration(last.p50_s)}"
    note += "; a line leads from the one to the other, or to the end of a reply that never had its last"
    figure, axes = canvas(TITLE, note, height_in=4.8)
    whole_s = found["last_token_s"].fillna(0.0)
    found["whole_s"] = whole_s.where(found["ok"], found[["duration_s"]].assign(whole_s=whole_s).max(axis=1))
    scaled = scale(axes, [*found["first_token_s"], *found["whole_s"]], axis="y")
    shown, _ = thin(found)
    xs = (shown["ended_s"] - report.began_t).tolist()
    firsts = scaled.places(shown["first_token_s"])
    low, high = min(0.0, *xs, 0.0), max(0.0, *xs, 0.0) * 1.03 or 1.0
    axes.vlines(xs, firsts, scaled.places(shown["whole_s"]), color=CLEAN, linewidth=0.8, zorder=1)
    axes.scatter(xs, firsts, s=16, color=SLATE, marker="_", linewidths=1.2, zorder=1.5, clip_on=False)
    for group in groups(found, report):
        group.scatter(
            axes,
            lambda a, share, aside: (
                a.ended_s - report.began_t + aside * MARK * (high - low), scaled.place(a.whole_s, share)
            ),
        )  # fmt: skip
    axes.set_xlim(low, high)
    axes.set_xlabel("time since the first trial began (s)")
    axes.set_ylabel(f"since the attempt began (s{scaled.suffix})")
    legend(figure, axes)
    return figure
