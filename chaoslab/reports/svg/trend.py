"""The share of trials that ended well over the runs of one scenario."""

from collections.abc import Sequence
from typing import NamedTuple

from chaoslab.analysis.measures.intervals import Rate
from chaoslab.reports.page import format_interval, format_percent
from chaoslab.reports.svg.parts import Picture, draw_share_axis, format_share, make_element, make_picture, stretch

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
    positions = [(n + 0.5) / len(points) for n in range(len(points))]

    y, elements = draw_share_axis(HEIGHT, (0.0, 0.5, 1.0))
    path = " ".join(
        f"{1000 * position:.1f},{y(point.well.value)}" for position, point in zip(positions, points, strict=True)
    )
    elements.append(stretch(make_element("polyline", points=path, class_="line"), height=HEIGHT))
    # Rounded up, so that there are no more than NAMED dates.
    step = max(1, -(-len(points) // NAMED))
    # Runs of one day are told apart by their time.
    one_a_day = len({point.when[:10] for point in points}) == len(points)
    for n, (position, point) in enumerate(zip(positions, points, strict=True)):
        x, style = format_share(position), " bad" if point.harmed else ""
        harm = f", harm in {point.harmed}" if point.harmed else ""
        open_text = f", {point.open} open" if point.open else ""
        description = (
            f"{point.when}: {point.well.count} of {point.well.total}, "
            f"{format_interval(point.well.interval)}{open_text}{harm}"
        )
        ends = {"y1": y(point.well.interval.low), "y2": y(point.well.interval.high)}
        bar = make_element("line", x1=x, x2=x, class_=f"bar{style}", **ends)
        dot = make_element("circle", cx=x, cy=y(point.well.value), r=5, class_=f"end{style}")
        elements.append(make_element("g", make_element("title", description), bar, dot))
        if n % step == 0:
            moment = point.when[:10] if one_a_day else point.when[5:]
            elements.append(make_element("text", moment, x=x, y=HEIGHT + 16, text_anchor="middle", class_="dim"))
    first, last = (f"{format_percent(point.well.value)} on {point.when}" for point in (points[0], points[-1]))
    description = f"{len(points)} runs: from {first} to {last}."
    caption = "Judged trials that ended well, run by run, with the 95 % interval over prompts; red: harm was done."
    return make_picture(f"trend-{number}", "Trend", description, HEIGHT, elements, caption=caption, style="levels")
