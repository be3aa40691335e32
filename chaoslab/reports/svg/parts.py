"""The parts of a picture in SVG: elements, scales and ticks. A picture's box is its plot: places are shares of its
width, heights are pixels, so a text keeps its size on a phone and on paper. Texts at the axes overflow the box. Colours
come from the page's style, by class."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element, tostring

TICKS = 5
"""About the number of ticks on an axis."""


@dataclass(frozen=True)
class Picture:
    """A drawn picture. `name`: its class. `title`: its name to people. `svg`: its markup, in which every text is
    escaped. `caption`: the line below it."""

    name: str
    title: str
    svg: str
    caption: str


@dataclass(frozen=True)
class PictureAxis:
    """An axis. `place`: a value as a share of the width, 0 to 1. `ticks`: (share, label)."""

    place: Callable[[float], float]
    ticks: Sequence[tuple[float, str]]


def make_element(tag: str, *children: Element | str, **attributes: str | float) -> Element:
    """An element; `_` in the name of an attribute stands for `-`, and one at its end is dropped."""
    element = Element(
        tag,
        {
            _attribute_name(key): value if isinstance(value, str) else f"{value:.6g}"
            for key, value in attributes.items()
        },
    )
    for child in children:
        if isinstance(child, str):
            element.text = (element.text or "") + child
        else:
            element.append(child)
    return element


def _attribute_name(key: str) -> str:
    # SVG's one attribute here that is written with a capital.
    return key if key == "viewBox" else key.rstrip("_").replace("_", "-")


def format_share(value: float) -> str:
    """A share of the width as SVG spells it."""
    # Three digits are a hundredth of a pixel on a wide screen.
    return f"{100 * value:.3f}".rstrip("0").rstrip(".") + "%"


def make_picture(name: str, title: str, description: str, height: float, elements: Iterable[Element], *, caption: str,
            links: bool = False, style: str = "") -> Picture:  # fmt: skip
    """The picture with these parts. `description`: its content in words. `links`: it holds links, so it is no image
    that hides its content from a keyboard. `style`: a further class."""
    labels = (make_element("title", title, id=f"{name}-title"), make_element("desc", description, id=f"{name}-desc"))
    svg = make_element(
        "svg", *labels, *elements, class_=f"chart {name} {style}".strip(), width="100%", height=height,
        # An image hides what is in it from a keyboard, and so its links.
        role="group" if links else "img", aria_labelledby=f"{name}-title", aria_describedby=f"{name}-desc",
    )  # fmt: skip
    return Picture(name, title, tostring(svg, encoding="unicode"), caption)


def stretch(*children: Element, height: float) -> Element:
    """A box as wide as the plot, in which x is a share in thousandths and y is in pixels: for paths, which take no
    shares."""
    return make_element(
        "svg", *children, x="0", y="0", width="100%", height=height, viewBox=f"0 0 1000 {height:g}",
        # none: x and y have different units.
        preserveAspectRatio="none",
    )  # fmt: skip


def draw_axis(scale: PictureAxis, label: str, height: float) -> list[Element]:
    """The upright lines of the ticks, their labels below the plot, and the axis's own."""
    elements = []
    for position, text in scale.ticks:
        elements.append(
            make_element("line", x1=format_share(position), x2=format_share(position), y1=0, y2=height, class_="tick")
        )
        elements.append(
            make_element("text", text, x=format_share(position), y=height + 16, text_anchor="middle", class_="dim")
        )
    return [*elements, make_element("text", label, x="50%", y=height + 34, text_anchor="middle", class_="dim")]


def draw_share_axis(height: float, shares: Iterable[float]) -> tuple[Callable[[float], float], list[Element]]:
    """An upright axis of shares, 0 to 1: the place of a value in pixels from the top, and lines at these shares with
    their labels."""

    def y(value: float) -> float:
        return round(height * (1 - value), 1)

    elements = []
    for value in shares:
        elements.append(make_element("line", x1="0", x2="100%", y1=y(value), y2=y(value), class_="tick"))
        elements.append(make_element("text", f"{value:.0%}", x=-6, y=y(value) + 4, text_anchor="end", class_="dim"))
    return y, elements


def make_linear_axis(low: float, high: float) -> PictureAxis:
    """A scale from low to high, with ticks at round numbers."""
    # or 1.0, where all is at one value.
    span = (high - low) or 1.0
    return PictureAxis(
        lambda value: (value - low) / span, [((tick - low) / span, f"{tick:g}") for tick in round_ticks(low, high)]
    )


def round_ticks(low: float, high: float) -> list[float]:
    """Round numbers from low to high."""
    # or 1.0, where all is at one value.
    rough = ((high - low) or 1.0) / TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    # 0.999: a float a little above would take the next larger step.
    step = next(n * power for n in (1, 2, 5, 10) if n * power >= rough * 0.999)
    # 1e-9 for ticks at the ends; + 0.0, since a tick may be -0.
    return [round(n * step, 9) + 0.0 for n in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]
