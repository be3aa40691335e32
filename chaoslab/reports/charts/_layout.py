"""The layout of a chart with one pair of axes: measured once and placed once.

matplotlib's constrained layout measures every text twice and solves a system of equations; a chart here needs a margin
on each side.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.layout_engine import LayoutEngine

PAD_IN = 0.045
"""The free space around the texts, in inches."""
GUESS = {"left": 0.19, "right": 0.97, "bottom": 0.16, "top": 0.85}
"""The axes' place while their texts are measured, as shares of the figure. It is near the usual result, so that the
numbers on the axes do not change afterwards."""
TITLE = 0.012
"""The place of the title and of the note below it, from the left, as a share of the figure."""
LEAST = 0.15
"""The least width and height of the axes, as a share of the figure, whatever their texts need."""


@cache
def engine() -> LayoutEngine:
    """The layout, as a figure takes it. It keeps nothing, so all figures share one."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import LayoutEngine

    class OneAxes(LayoutEngine):
        _adjust_compatible = True
        _colorbar_gridspec = True

        def execute(self, fig: Figure) -> None:
            (axes,) = fig.axes
            fig.subplots_adjust(**GUESS)
            renderer = fig._get_renderer()  # type: ignore[attr-defined]  # as matplotlib's own layouts do
            width, height = fig.bbox.size
            pad = PAD_IN * fig.dpi
            place = axes.bbox
            texts = axes.get_tightbbox(renderer, for_layout_only=True) or place
            titles = [fig._suptitle] if fig._suptitle else []  # type: ignore[attr-defined]
            above = sum(title.get_window_extent(renderer).height + pad for title in titles)
            below = sum(legend.get_window_extent(renderer).height + pad for legend in fig.legends)
            left = place.x0 - texts.x0 + pad
            right = width - (texts.x1 - place.x1) - pad
            bottom = place.y0 - texts.y0 + pad + below
            top = height - (texts.y1 - place.y1) - pad - above
            fig.subplots_adjust(
                left=left / width,
                right=max(right, left + LEAST * width) / width,
                bottom=bottom / height,
                top=max(top, bottom + LEAST * height) / height,
            )
            place = axes.bbox  # the note begins where the title does, not where long labels let the axes begin
            axes._left_title.set_x((TITLE * width - place.x0) / place.width)  # type: ignore[attr-defined]

    return OneAxes()
