"""One page over all runs of a folder: the trend of each scenario, and a line a run with a link to its report. Runs of
one scenario at another level of chaos have a trend of their own."""

from pathlib import Path
from typing import Any
from urllib.parse import quote

from chaoslab.base.jsonable import to_one_line
from chaoslab.reports._svg import draw_success_trend
from chaoslab.reports.formats import write_file
from chaoslab.reports.formats.html import FILE, render_page
from chaoslab.reports.page import format_count
from chaoslab.reports.runs import RunListEntry, list_runs

PAGE = "index.html"
NAME = 100
"""The most characters of a name."""


def write_index(logs: Path) -> Path:
    """Writes the page into the folder; returns its path. Raises LookupError: there is no run. ModuleNotFoundError:
    Jinja is not installed. OSError: it cannot be written."""
    runs = list(list_runs(logs))
    by_name: dict[str, list[RunListEntry]] = {}
    for run in runs:
        # Runs at another level of chaos are no trend.
        level = f", level {run.level:g}" if run.level else ""
        by_name.setdefault((to_one_line(run.name, NAME) or "other runs") + level, []).append(run)

    def build_row(run: RunListEntry) -> dict[str, Any]:
        link = f"{quote(run.folder.name)}/{FILE}" if (run.folder / FILE).is_file() else ""
        return {**run.to_page_row(), "run": to_one_line(run.folder.name, NAME), "link": link}

    groups = [
        {"name": name, "picture": draw_success_trend(named_runs, number), "rows": [*map(build_row, named_runs)]}
        for number, (name, named_runs) in enumerate(by_name.items(), 1)
    ]
    return write_file(render_page("index.html", runs=len(runs), groups=groups, count=format_count), logs / PAGE)
