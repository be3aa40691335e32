"""A run's pictures for its page, as inline SVG: one file each, with a function `draw` from the run's report. Places are
shares of the width and texts have pixels, so a text keeps its size on a phone."""

from collections.abc import Callable
from functools import partial

from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.analysis.verdict.guard import run_guarded
from chaoslab.reports.svg import recovery, timeline
from chaoslab.reports.svg.parts import Picture

PICTURES: dict[str, Callable[[RunReport], Picture | None]] = {
    "Faults and targets": timeline.draw,
    "Recovery": recovery.draw,
}
"""Each picture by the title of its section."""


def draw_pictures(report: RunReport) -> dict[str, Picture]:
    """The pictures of a run. One without data, or whose measure failed, is left out: its section says why."""
    drawn = {title: run_guarded(partial(draw, report), _return_none) for title, draw in PICTURES.items()}
    return {title: picture for title, picture in drawn.items() if picture is not None}


def _return_none(_why: str) -> None:
    return None
