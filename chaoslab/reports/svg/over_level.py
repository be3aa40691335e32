"""The share of trials that pass over the level of chaos."""

from xml.etree.ElementTree import Element

from chaoslab.core.levels import chance_of
from chaoslab.reports.levels import PassRate, list_levels
from chaoslab.reports.page import format_interval, format_percent
from chaoslab.reports.svg.parts import Picture, draw_share_axis, format_share, make_element, make_picture, stretch
from chaoslab.reports.text import make_one_line

HEIGHT = 190.0
"""The plot's height in pixels."""
NAME = 60
"""The most characters of a name."""


def draw(line: PassRate, number: int = 1, *, least: float | None = None) -> Picture | None:
    """A point with its 95 % interval at each level. `number`: that of the picture in its page. `least`: the
    share that is asked for. None if nothing was judged."""
    if not line.points:
        return None
    levels = list_levels([line])
    positions = {level: (n + 0.5) / len(levels) for n, level in enumerate(levels)}

    y, lines = draw_share_axis(HEIGHT, (0.0, 0.25, 0.5, 0.75, 1.0))
    elements: list[Element] = []
    for level, position in positions.items():
        elements.append(
            make_element(
                "text", f"{level:g}", x=format_share(position), y=HEIGHT + 16, text_anchor="middle", class_="dim"
            )
        )
        chance = f"{chance_of(level) * 100:g} %"
        elements.append(
            make_element("text", chance, x=format_share(position), y=HEIGHT + 31, text_anchor="middle", class_="dim")
        )
    elements += lines
    if least is not None:
        elements.append(make_element("line", x1="0", x2="100%", y1=y(least), y2=y(least), class_="least"))
    path = " ".join(f"{1000 * positions[level]:.1f},{y(rate.value)}" for level, rate in line.points)
    elements.append(stretch(make_element("polyline", points=path, class_="line"), height=HEIGHT))
    for level, rate in line.points:
        x, low, high = format_share(positions[level]), y(rate.interval.low), y(rate.interval.high)
        style = " bad" if least is not None and rate.value < least else ""
        tip = make_element(
            "title", f"level {level:g}: {rate.count} of {rate.total}, 95 % interval {format_interval(rate.interval)}"
        )
        bar = make_element("line", x1=x, x2=x, y1=low, y2=high, class_=f"bar{style}")
        elements.append(
            make_element("g", tip, bar, make_element("circle", cx=x, cy=y(rate.value), r=5, class_=f"end{style}"))
        )
        down = 8 if rate.value > 0.5 else -8  # beside the interval, which is longer on that side
        elements.append(make_element("text", format_percent(rate.value), x=x, dx=8, y=y(rate.value) + down + 6))
    shares_text = "; ".join(f"{format_percent(rate.value)} at level {level:g}" for level, rate in line.points)
    caption = "Judged trials that pass (in a run: correct ones), with the 95 % interval over prompts; "
    caption += "below each level its share of calls that meet a fault"
    caption += f"; dashed: the {format_percent(least)} that the scenario asks for" if least is not None else ""
    description = f"{make_one_line(line.label or 'All runs together', NAME)}: {shares_text}."
    title = f"Pass rate over the level of chaos{f': {make_one_line(line.label, NAME)}' if line.label else ''}"
    return make_picture(f"level-{number}", title, description, HEIGHT, elements, caption=f"{caption}.", style="levels")
