"""The recovery curve of a run's page, as inline SVG, which needs no package. A picture's box is its plot: places are
shares of its width, heights are pixels, so a text keeps its size on a phone and on paper. Texts at the axes overflow
the box. Colours come from the page's style, by class."""

import math
from collections.abc import Iterable
from typing import NamedTuple
from xml.etree.ElementTree import Element, tostring

from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.reports.frames import list_recovery_curve_points

RECOVERY_HEIGHT = 190.0
"""The height of the plot in pixels."""
TICKS = 5
"""About the number of ticks on an axis."""


class Picture(NamedTuple):
    """A drawn picture. `svg`: its markup, in which every text is escaped. `caption`: the line below it."""

    svg: str
    caption: str


def draw_recovery_curve(report: RunReport) -> Picture | None:
    """Kaplan–Meier's curve with its 95 % interval (log–log); None if there are too few incidents."""
    corner_rows, incidents = list_recovery_curve_points(report), report.recovery.value.incidents
    if not corner_rows:
        return None
    corners, still_open = ([row for row in corner_rows if row["open"] is is_open] for is_open in (False, True))
    never_count = sum(not incident.recovered and not incident.censored for incident in incidents)
    # The axis needs a length, also if all took no time.
    height, end_s = RECOVERY_HEIGHT, max(corners[-1]["seconds"], 1e-6)
    elements = [*_draw_share_gridlines(height, (0.0, 0.25, 0.5, 0.75, 1.0))]
    for tick_s in choose_round_ticks(end_s):
        x = _format_x_percent(tick_s / end_s)
        elements.append(_make_element("line", x1=x, x2=x, y1=0, y2=height, class_="tick"))
        elements.append(_make_element("text", f"{tick_s:g}", x=x, y=height + 16, text_anchor="middle", class_="dim"))
    label = "time since the call that met the fault began (s)"
    elements.append(_make_element("text", label, x="50%", y=height + 34, text_anchor="middle", class_="dim"))

    def list_curve_points(name: str) -> list[str]:
        return [f"{1000 * row['seconds'] / end_s:.1f},{_share_to_y(height, row[name])}" for row in corners]

    band = _make_element(
        "polygon", points=" ".join([*list_curve_points("high"), *reversed(list_curve_points("low"))]), class_="band"
    )
    elements.append(
        _make_stretched_svg(
            height, band, _make_element("polyline", points=" ".join(list_curve_points("share")), class_="line")
        )
    )
    for row in still_open:
        x, middle = _format_x_percent(row["seconds"] / end_s), _share_to_y(height, row["share"])
        elements.append(_make_element("line", x1=x, x2=x, y1=middle - 7, y2=middle + 7, class_="censored"))
    if never_count:
        level = _share_to_y(height, never_count / len(incidents))
        elements.append(_make_element("line", x1="0", x2="100%", y1=level, y2=level, class_="least"))
        never = f"never, or with harm: {never_count}"
        elements.append(_make_element("text", never, x="100%", y=level - 5, text_anchor="end"))
    caption = f"Share of the {len(incidents)} incidents that are not over yet (Kaplan–Meier); shaded: 95 % interval"
    caption += f"; broken line: the {never_count} that never recovered, or with harm" if never_count else ""
    caption += "; upright strokes: cut short, by the log's end or a dead service" if still_open else ""
    return _build_picture("recovery", height, elements, f"{caption}.")


def _build_picture(name: str, height: float, elements: Iterable[Element], caption: str) -> Picture:
    """The picture with these parts. Who cannot see it hears its caption."""
    svg = _make_element("svg", _make_element("title", caption, id=name), *elements, class_="chart", width="100%",
                   height=height,
                   role="img", aria_labelledby=name)  # fmt: skip
    return Picture(tostring(svg, encoding="unicode"), caption)


def _make_element(tag: str, *children: Element | str, **attributes: str | float) -> Element:
    """An element; `_` in the name of an attribute stands for `-`, and one at its end is dropped."""
    element = Element(tag)
    for key, value in attributes.items():
        element.set(key.rstrip("_").replace("_", "-"), value if isinstance(value, str) else f"{value:.6g}")
    for child in children:
        if isinstance(child, str):
            element.text = child
        else:
            element.append(child)
    return element


def _make_stretched_svg(height: float, *children: Element) -> Element:
    """A box as wide as the plot, in which x is in thousandths of it and y in pixels: for paths, which take no
    shares."""
    # none: x and y have different units.
    return _make_element("svg", *children, x="0", y="0", width="100%", height=height, viewBox=f"0 0 1000 {height:g}",
                    preserveAspectRatio="none")  # fmt: skip


def _draw_share_gridlines(height: float, shares: Iterable[float]) -> Iterable[Element]:
    """Lines across the plot at these shares, with their labels."""
    for value in shares:
        y = _share_to_y(height, value)
        yield _make_element("line", x1="0", x2="100%", y1=y, y2=y, class_="tick")
        yield _make_element("text", f"{value:.0%}", x=-6, y=y + 4, text_anchor="end", class_="dim")


def _share_to_y(height: float, share: float) -> float:
    """The place of a share, in pixels from the top."""
    return round(height * (1 - share), 1)


def _format_x_percent(value: float) -> str:
    """A share of the width as SVG spells it."""
    # Three digits are a hundredth of a pixel on a wide screen.
    return f"{100 * value:.3f}".rstrip("0").rstrip(".") + "%"


def choose_round_ticks(high: float) -> list[float]:
    """Round numbers from 0 to `high`, which is above 0."""
    power = 10.0 ** math.floor(math.log10(high / TICKS))
    # 0.999: a float a little above would take the next larger step.
    step = next(n * power for n in (1, 2, 5, 10) if n * power >= high / TICKS * 0.999)
    # 1e-9 for a tick at the end.
    return [round(n * step, 9) for n in range(math.floor(high / step + 1e-9) + 1)]
