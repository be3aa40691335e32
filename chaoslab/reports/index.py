"""One page over all runs of a folder: the trend of each scenario, and a line a run with a link to its report. Runs of
one scenario at another level of chaos have a trend of their own."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from chaoslab.base.jsonable import line
from chaoslab.reports.contents._table import NONE
from chaoslab.reports.formats import write_file
from chaoslab.reports.formats.html import FILE, render_page
from chaoslab.reports.page import count, rate_text
from chaoslab.reports.runs import REVISION, RunLine, list_runs
from chaoslab.reports.svg import trend
from chaoslab.reports.trials import format_counts

PAGE = "index.html"
NAME = 100
"""The most characters of a name."""


def write_index(logs: Path) -> Path:
    """Writes the page into the folder; returns its path. Raises LookupError: there is no run. ModuleNotFoundError:
    Jinja is not installed. OSError: it cannot be written."""
    runs = list(list_runs(logs))
    by_name: dict[str, list[RunLine]] = {}
    for run in runs:
        # Runs at another level of chaos are no trend.
        level = f", level {run.level:g}" if run.level else ""
        by_name.setdefault((line(run.name, NAME) or "other runs") + level, []).append(run)
    groups = [
        {
            "name": name,
            "picture": trend.draw(_trend_points(named_runs), number),
            "rows": [_row_data(run_line) for run_line in named_runs],
        }
        for number, (name, named_runs) in enumerate(by_name.items(), 1)
    ]
    return write_file(render_page("index.html", runs=len(runs), groups=groups, count=count), logs / PAGE)


def _trend_points(runs: Sequence[RunLine]) -> list[trend.TrendPoint]:
    """The runs with a share, oldest first."""
    return [
        trend.TrendPoint(f"{run.began:%Y-%m-%d %H:%M}", run.well, run.harmed or 0, run.standings.open)
        for run in reversed(runs)
        if run.well is not None
    ]


def _row_data(run: RunLine) -> dict[str, Any]:
    level = None if run.level is None else f"{run.level:g}"
    ended = [rate_text(run.well)] if run.well else []
    ended += [f"{run.standings.open} open"] if run.standings.open else []
    result = (", ".join(ended) or None, run.harmed)
    rest = (run.witnessed, f"{run.began:%Y-%m-%d %H:%M}", line(run.revision, REVISION) or None, run.seed, level)
    return {
        "run": line(run.folder.name, NAME),
        "link": f"{quote(run.folder.name)}/{FILE}" if (run.folder / FILE).is_file() else "",
        "result": [NONE if figure is None else str(figure) for figure in result],
        "rest": [NONE if figure is None else str(figure) for figure in rest],
        "said": run.trouble or run.ruling or ("" if run.outcomes is None else format_counts(run.outcomes)),
    }
