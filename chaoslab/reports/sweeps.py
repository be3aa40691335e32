"""The result of a sweep: a line for each place of its grid, a table, and a page with its charts."""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any

from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.base.durations import format_duration, format_long_duration
from chaoslab.config.settings import Settings
from chaoslab.reports import charts
from chaoslab.reports.formats import write_file
from chaoslab.reports.page import format_interval, format_percent

PAGE = "sweep.html"
HEADER = ("well", "interval", "open", "done", "faults", "recovered", "MTTR", "a trial")
NOTES = [
    "well: trials that ended well, of the judged ones, with the 95 % interval over prompts; open: not known;",
    "done: trials that did all as asked, of those of which that is known; faults: witnessed;",
    "recovered: of the incidents; MTTR: the mean of the recovered; a trial: the mean",
]
TITLES = {"success": "Success", "mttr": "Time to recovery", "time": "Time per trial", "heat": "Success at each pair"}


@dataclass(frozen=True)
class GridCell:
    """One run of the grid. `levels`: (setting, value as given) of each knob. `given`: all settings of its command
    line."""

    levels: tuple[tuple[str, str], ...]
    given: tuple[str, ...]
    chosen: Settings

    def __str__(self) -> str:
        return " ".join(f"{name}={level}" for name, level in self.levels)


@dataclass(frozen=True)
class DoneCell:
    """A cell with its run. `kept`: it was there before. `left_s`: the seconds that the rest will take, if known."""

    cell: GridCell
    folder: Path
    kept: bool
    number: int
    left_s: float | None

    @cached_property
    def report(self) -> RunReport:
        return RunReport.from_folder(self.folder)


def render_progress_line(cell: DoneCell, cells: int) -> str:
    """The progress: the place, its result, and the time left."""
    ended = cell.report.success.value.ended
    result_text = f"{ended} ended well" if ended.judged_count else f"none judged, {ended.open} open"
    kept_text = f", kept from {cell.folder}" if cell.kept else ""
    time_left = f"; {format_long_duration(cell.left_s)} to go" if cell.left_s else ""
    return f"{cell.number}/{cells} {cell.cell}: {result_text}{kept_text}{time_left}"


def render_table(cells: Sequence[DoneCell]) -> list[str]:
    """The lines of the table."""
    names = [name for name, _ in cells[0].cell.levels]
    rows = [
        [*names, *HEADER],
        *([*(level for _, level in cell.cell.levels), *_format_cell_key_figures(cell.report)] for cell in cells),
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(str.rjust, row, widths)) for row in rows] + NOTES


def cell_to_json(cell: DoneCell) -> dict[str, Any]:
    """The place as JSON values; null is not known. Times in seconds."""
    figures, recovery = cell.report.success.value, cell.report.recovery.value.overall
    times, well = cell.report.figures.value.durations_s, figures.ended_well_rate
    return {
        "levels": dict(cell.cell.levels), "run": str(cell.folder), "trials": len(cell.report.trials),
        "ended": vars(figures.ended), "done": None if figures.done is None else vars(figures.done),
        "interval": None if well is None else [well.interval.low, well.interval.high],
        "prompts": None if well is None else well.prompts,
        "incidents": recovery.n, "never_recovered": recovery.never, "cut_short": recovery.censored,
        "mttr_mean_s": recovery.mean_s, "trial_mean_s": fmean(times) if times else None,
    }  # fmt: skip


def _format_cell_key_figures(report: RunReport) -> list[str]:
    figures, recovery, times = report.success.value, report.recovery.value.overall, report.figures.value.durations_s
    well = figures.ended_well_rate
    done_share = None if figures.done is None else figures.done.well_share
    witnessed_count = sum(row.witnessed for row in report.delivered.value.by_fault)
    return [
        "–" if well is None else format_percent(well.value),
        "–" if well is None else format_interval(well.interval),
        f"{figures.ended.open:,}",
        "–" if done_share is None else format_percent(done_share),
        f"{witnessed_count:,}",
        # Those that were cut short could not recover, and are not counted against it.
        f"{recovery.recovered_count} of {ended_incidents}"
        if (ended_incidents := recovery.n - recovery.censored)
        else "–",
        "–" if recovery.mean_s is None else format_duration(recovery.mean_s, 2),
        format_duration(fmean(times), 2) if times else "–",
    ]


def write_sweep(cells: Sequence[DoneCell], pictures: Mapping[str, bytes], folder: Path) -> Path:
    """Writes the charts and the page into the folder; returns the page's path. Raises OSError: one cannot be
    written."""
    from chaoslab.reports.formats.html import render_page

    charts.write_charts(pictures, folder)
    chart_images = [
        {"title": TITLES.get(name.partition("_")[0], name), "data": b64encode(data).decode()}
        for name, data in pictures.items()
    ]
    knobs = [name for name, _ in cells[0].cell.levels]
    rows = [
        {
            "levels": [level for _, level in cell.cell.levels],
            "figures": _format_cell_key_figures(cell.report),
            "run": str(cell.folder),
        }
        for cell in cells
    ]
    other_settings = [setting for setting in cells[0].cell.given if setting.partition("=")[0] not in knobs]
    text = render_page(
        "sweep.html",
        knobs=knobs,
        alone=other_settings,
        header=HEADER,
        notes=" ".join(NOTES),
        rows=rows,
        pictures=chart_images,
    )
    return write_file(text, folder / PAGE)
