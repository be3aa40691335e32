"""The share of trials that ended well over the runs of one scenario."""

from collections.abc import Sequence
from typing import NamedTuple

from chaoslab.analysis.measures.intervals import Rate
from chaoslab.reports.page import percent, percents
from chaoslab.reports.svg.parts import Picture, el, picture, share, stretched, upright

HEIGHT = 130.0
"""The plot's height in pixels."""
NAMED = 4
"""The runs whose dates stand below the plot at most."""


class TrendPoint(NamedTuple):
    """One run: its date, the share of its judged trials that ended well, and the numbers of trials with harm and
    of open ones."""

    when: str
    well: Rate
    harmed: int
    open: int = 0


def draw(points: Sequence[TrendPoint], number: int = 1) -> Picture | None:
    """A point with its 95 % interval for each run, oldest first; with harm, in the colour of what is bad.
    `number`: that of the picture in its page. None below two runs."""
    if len(points) < 2:
        return None
    places = [(n + 0.5) / len(points) for n in range(len(points))]

    y, parts = upright(HEIGHT, (0.0, 0.5, 1.0))
    path = " ".join(f"{1000 * at:.1f},{y(one.well.value)}" for at, one in zip(places, points, strict=True))
    parts.append(stretched(el("polyline", points=path, class_="line"), height=HEIGHT))
    step = max(1, -(-len(points) // NAMED))
    one_a_day = len({one.when[:10] for one in points}) == len(points)
    for n, (at, one) in enumerate(zip(places, points, strict=True)):
        x, style = share(at), " bad" if one.harmed else ""
        harm = f", harm in {one.harmed}" if one.harmed else ""
        left = f", {one.open} open" if one.open else ""
        said = f"{one.when}: {one.well.count} of {one.well.total}, {percents(one.well.interval)}{left}{harm}"
        ends = {"y1": y(one.well.interval.low), "y2": y(one.well.interval.high)}
        bar = el("line", x1=x, x2=x, class_=f"bar{style}", **ends)
        dot = el("circle", cx=x, cy=y(one.well.value), r=5, class_=f"end{style}")
        parts.append(el("g", el("title", said), bar, dot))
        if n % step == 0:
            moment = one.when[:10] if one_a_day else one.when[5:]
            parts.append(el("text", moment, x=x, y=HEIGHT + 16, text_anchor="middle", class_="dim"))
    first, last = (f"{percent(one.well.value)} on {one.when}" for one in (points[0], points[-1]))
    said = f"{len(points)} runs: from {first} to {last}."
    caption = "Judged trials that ended well, run by run, with the 95 % interval over prompts; red: harm was done."
    return picture(f"trend-{number}", "Trend", said, HEIGHT, parts, caption=caption, style="levels")
