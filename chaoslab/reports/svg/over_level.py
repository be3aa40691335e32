"""The share of trials that pass over the level of chaos."""

from xml.etree.ElementTree import Element

from chaoslab.core.levels import chance_of
from chaoslab.reports.levels import PassRate, axis
from chaoslab.reports.page import percent, percents
from chaoslab.reports.svg.parts import Picture, el, picture, share, stretched, upright
from chaoslab.reports.text import one_line

HEIGHT = 190.0
"""The plot's height in pixels."""
NAME = 60
"""The most characters of a name."""


def draw(line: PassRate, number: int = 1, *, least: float | None = None) -> Picture | None:
    """A point with its 95 % interval at each level. `number`: that of the picture in its page. `least`: the
    share that is asked for. None if nothing was judged."""
    if not line.points:
        return None
    levels = axis([line])
    places = {level: (n + 0.5) / len(levels) for n, level in enumerate(levels)}

    y, lines = upright(HEIGHT, (0.0, 0.25, 0.5, 0.75, 1.0))
    parts: list[Element] = []
    for level, at in places.items():
        parts.append(el("text", f"{level:g}", x=share(at), y=HEIGHT + 16, text_anchor="middle", class_="dim"))
        chance = f"{chance_of(level) * 100:g} %"
        parts.append(el("text", chance, x=share(at), y=HEIGHT + 31, text_anchor="middle", class_="dim"))
    parts += lines
    if least is not None:
        parts.append(el("line", x1="0", x2="100%", y1=y(least), y2=y(least), class_="least"))
    path = " ".join(f"{1000 * places[level]:.1f},{y(rate.value)}" for level, rate in line.points)
    parts.append(stretched(el("polyline", points=path, class_="line"), height=HEIGHT))
    for level, rate in line.points:
        x, low, high = share(places[level]), y(rate.interval.low), y(rate.interval.high)
        style = " bad" if least is not None and rate.value < least else ""
        tip = el("title", f"level {level:g}: {rate.count} of {rate.total}, 95 % interval {percents(rate.interval)}")
        bar = el("line", x1=x, x2=x, y1=low, y2=high, class_=f"bar{style}")
        parts.append(el("g", tip, bar, el("circle", cx=x, cy=y(rate.value), r=5, class_=f"end{style}")))
        down = 8 if rate.value > 0.5 else -8  # beside the interval, which is longer on that side
        parts.append(el("text", percent(rate.value), x=x, dx=8, y=y(rate.value) + down + 6))
    told = "; ".join(f"{percent(rate.value)} at level {level:g}" for level, rate in line.points)
    caption = "Judged trials that pass (in a run: correct ones), with the 95 % interval over prompts; "
    caption += "below each level its share of calls that meet a fault"
    caption += f"; dashed: the {percent(least)} that the scenario asks for" if least is not None else ""
    said = f"{one_line(line.label or 'All runs together', NAME)}: {told}."
    title = f"Pass rate over the level of chaos{f': {one_line(line.label, NAME)}' if line.label else ''}"
    return picture(f"level-{number}", title, said, HEIGHT, parts, caption=f"{caption}.", style="levels")
