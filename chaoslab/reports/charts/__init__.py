"""A run as charts: one file per chart, each a function from a run's tables to a figure. Nothing here keeps global
state.

`main` runs `chaoslab charts` and `python charts.py`.
"""

from __future__ import annotations

import errno
import importlib
import os
import pkgutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from chaoslab.analysis.verdict.guard import run_guarded
from chaoslab.base import extras
from chaoslab.base.commandline import choose_failed_write_exit_code, print_error
from chaoslab.base.files import replace_file
from chaoslab.base.interrupts import interrupt_outside_imports
from chaoslab.reports.charts._style import add_run_caption, draw_message_figure, read_blank_reason
from chaoslab.reports.charts.series import (
    AXIS,
    SettingAxis,
    choose_axis,
    describe_series,
    differ_in_chaos_level,
    find_varied_settings,
    group_into_series,
    has_setting,
    table_to_rows,
)
from chaoslab.reports.levels import pool_runs_by_level
from chaoslab.reports.places import LATEST, LOGS, find_charts_folder

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from chaoslab.reports.frames import Frames

OUT = Path("charts")
DPI = 120
OVERLAID = ("runs", "trials", "incidents")
"""The tables that charts of several runs are drawn from."""
COMPRESSION = 3
"""Of zlib: a tenth larger than its usual 6, and written in half the time."""


def list_charts() -> list[str]:
    """The charts of one run."""
    return [name for name, _ in _iterate_chart_functions()]


def draw_charts(run: Frames, *, only: str = "") -> dict[str, Figure]:
    """The charts of one run by file name (without `.png`), also those that have nothing to show. `only`: this one."""
    _load_matplotlib()
    # Each alone, so that a measure that fails costs its own chart only.
    figures = _draw_charts_guarded(
        {name: partial(chart, run) for name, chart in _iterate_chart_functions() if only in ("", name)}
    )
    for figure in figures.values():
        add_run_caption(figure, run.measures)
    return figures


def _iterate_chart_functions() -> Iterator[tuple[str, Callable[[Frames], Figure]]]:
    """Each file here with a function of the file's name: that function draws a chart of a run."""
    for file in pkgutil.iter_modules(__path__, f"{__name__}."):
        name = file.name.rpartition(".")[2]
        if chart := getattr(importlib.import_module(file.name), name, None):
            yield name, chart


def draw_multi_run_charts(runs: Frames) -> dict[str, Figure]:
    """The charts of several runs, from their tables OVERLAID: against the setting in which they differ, or the one of
    most values (TOXIC_PROB if they differ in none); over two if they differ in just two; and over their level of chaos
    if that is not the same in all. Runs that differ in nothing else share a line."""
    _load_matplotlib()
    from chaoslab.reports.charts.sweep import (
        draw_duration_against,
        draw_mttr_against,
        draw_pass_rate,
        draw_success_against,
        draw_success_heat_map,
    )

    run_rows = table_to_rows(runs.runs)
    pictures: dict[str, Callable[[], Figure]] = {}
    if axis := choose_axis(run_rows):
        series = group_into_series(run_rows, axis.name)
        pictures[f"success_vs_{axis.name.lower()}"] = partial(draw_success_against, series, axis)
        pictures[f"mttr_vs_{axis.name.lower()}"] = lambda: draw_mttr_against(series, axis, runs.incidents)
        pictures[f"time_vs_{axis.name.lower()}"] = lambda: draw_duration_against(series, axis, runs.trials)
        both = find_varied_settings(run_rows)
        if len(both) == 2 and len(group_into_series(run_rows, *both)) == 1:
            pictures["heat_map"] = partial(
                draw_success_heat_map, run_rows, axis, SettingAxis.from_runs(both[1], run_rows)
            )
    if differ_in_chaos_level(run_rows):
        pictures["pass_rate_vs_level"] = lambda: draw_pass_rate(
            [pool_runs_by_level(line.label, line.runs) for line in group_into_series(run_rows, of_levels=True)],
            passed="correct trials",
        )
    return _draw_charts_guarded(pictures)


def _draw_charts_guarded(pictures: Mapping[str, Callable[[], Figure]]) -> dict[str, Figure]:
    """The charts. If a chart's measure raises, it is replaced by one with the reason."""
    return {name: run_guarded(make, partial(_draw_failed_chart, name)) for name, make in pictures.items()}


def _draw_failed_chart(name: str, reason: str) -> Figure:
    # matplotlib reads what stands between two $ as a formula.
    figure = draw_message_figure(name.replace("_", " ").capitalize(), f"unknown ({reason})".replace("$", r"\$"))
    figure.axes[0].set_gid("")  # that something went wrong is worth a picture
    return figure


def _load_matplotlib() -> None:
    """Imports matplotlib without regard to MPLBACKEND: these charts need no backend. Raises Incomplete: a package that
    they need is not installed."""
    from chaoslab.config.settings import hide_variable

    extras.require_extras("a chart", "charts")
    # A backend that is not installed, or needs a display, would raise at the import.
    with hide_variable("MPLBACKEND"):
        importlib.import_module("matplotlib")


def render_pngs(figures: dict[str, Figure]) -> dict[str, bytes]:
    """The charts as PNG by file name, without those that have nothing to show. The bytes depend on the data alone (no
    time, no version in it)."""

    def render_png(name: str, figure: Figure) -> bytes:
        return run_guarded(lambda: _encode_png(figure), lambda why: _encode_png(_draw_failed_chart(name, why)))

    return {
        f"{name}.png": render_png(name, figure) for name, figure in figures.items() if not read_blank_reason(figure)
    }


def find_blank_charts(figures: Mapping[str, Figure]) -> dict[str, str]:
    """The charts that would show nothing, by file name, and why."""
    return {f"{name}.png": reason for name, figure in figures.items() if (reason := read_blank_reason(figure))}


def describe_blank_charts(empty: Mapping[str, str]) -> list[str]:
    """A line for each reason for which charts are not drawn, with their names. `empty`: as `find_blank_charts` gives
    them."""
    names: dict[str, list[str]] = {}
    for name, reason in empty.items():
        names.setdefault(reason.removeprefix("no data: "), []).append(name)
    return [f"no {', '.join(chart_names)}: {reason}" for reason, chart_names in names.items()]


def _encode_png(figure: Figure) -> bytes:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from PIL import Image

    canvas = FigureCanvasAgg(figure)
    figure.set_dpi(DPI)
    canvas.draw()  # type: ignore[no-untyped-call]  # once; savefig draws twice, for a layout
    pixels = canvas.buffer_rgba()  # type: ignore[no-untyped-call]
    # An alpha channel would be opaque everywhere, and take its time to compress.
    picture = Image.frombuffer("RGBA", canvas.get_width_height(), pixels).convert("RGB")
    picture.save(file := BytesIO(), format="png", compress_level=COMPRESSION, dpi=(DPI, DPI))
    return file.getvalue()


def save_chart(figure: Figure, path: Path) -> None:
    """Writes a chart as the kind of file that the path ends in: .png or .svg. Raises OSError: it cannot be written."""
    if path.suffix == ".png":
        path.write_bytes(_encode_png(figure))
    else:
        # No date: the same run gives the same bytes.
        figure.savefig(path, metadata={"Date": None})


def write_charts(pictures: Mapping[str, bytes], folder: Path) -> list[Path]:
    """Writes all pictures into the folder. Raises OSError: not all could be written; the earlier ones are then
    unchanged."""
    folder.mkdir(parents=True, exist_ok=True)
    # Two labs may draw into one folder at once: each writes its own temporary files, and the later pictures stay.
    paths = {folder / name: picture for name, picture in pictures.items()}
    # All are written before the first is replaced, so that a full disk leaves the old ones whole.
    with ExitStack() as stack:
        for path, picture in paths.items():
            stack.enter_context(replace_file(path)).write_bytes(picture)
        for path in paths:  # before any is replaced
            if path.is_dir() and not path.is_symlink():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    return list(paths)


def choose_chart_folders(run_folder: Path, *, out: Path, logs: Path) -> list[Path]:
    """The folders for a run's charts: `run_folder`, and also `out` if it is the latest run."""
    latest = logs / LATEST
    return [run_folder, out] if latest.exists() and latest.resolve() == run_folder.parent.resolve() else [run_folder]


def replace_charts(
    pictures: Mapping[str, bytes], folders: Sequence[Path], *, without: Iterable[str] = ()
) -> tuple[list[Path], list[str], int]:
    """Writes the pictures into each folder, and removes those of earlier runs that are named in `without`; returns the
    paths, a line for each folder that cannot be written, and the exit code."""
    paths, complaints, code = [], [], 0
    for folder in folders:
        try:
            paths += write_charts(pictures, folder)
            # A chart of an earlier run would be taken for this one's.
            for name in without:
                with suppress(OSError):  # a folder of the user's, for one
                    (folder / name).unlink(missing_ok=True)
        except OSError as error:
            location = error.filename2 or error.filename or folder
            complaints.append(f"cannot draw into {location}: {error.strerror or error}")
            code = max(code, choose_failed_write_exit_code(error))
    return paths, complaints, code


def main(names: Sequence[str] = (), *, out: Path | None = None, logs: Path = LOGS) -> int:
    """Draws the named runs, by default the latest; several are drawn over each other. Returns 0, or with one line
    on the error 2, or 3 if the disk is full."""
    from chaoslab.reports.frames import Frames, JoinedRunFrames

    names = names or [LATEST]
    notes: list[str] = []
    lines_note = ""

    def load_frames(name: str) -> Frames:
        run = Frames.read(name, logs=logs)
        notes.extend(f"{name}: {note}" if len(names) > 1 else note for note in run.measures.notes)
        return run

    try:
        with interrupt_outside_imports():
            if len(names) == 1:
                figures = draw_charts(load_frames(*names))
            else:
                runs = JoinedRunFrames(map(load_frames, names), only=OVERLAID)
                run_rows = table_to_rows(runs.runs)
                if axis := choose_axis(run_rows):
                    lines_note = describe_series(group_into_series(run_rows, axis.name), axis.name)
                elif not differ_in_chaos_level(run_rows):
                    silent = next(name for name, run in zip(names, run_rows, strict=True) if not has_setting(run, AXIS))
                    raise LookupError(f"the logs of '{silent}' do not state its {AXIS}: it cannot be laid over others")
                figures = draw_multi_run_charts(runs)
            pictures, empty = render_pngs(figures), find_blank_charts(figures)
    except (LookupError, extras.Incomplete) as error:
        return print_error(error)
    alone = len(names) == 1 and not out
    folders = (
        choose_chart_folders(find_charts_folder(names[0], logs=logs), out=OUT, logs=logs) if alone else [out or OUT]
    )
    paths, complaints, code = replace_charts(pictures, folders, without=empty)
    for line in [
        *(f"note: {note}" for note in notes),
        *(line for line in describe_blank_charts(empty) if not complaints),
        *filter(None, [lines_note]),
        *(f"{complaint}; --out should name a folder" for complaint in complaints),
    ]:
        print(line, file=sys.stderr)
    if paths:
        print(*paths, sep="\n")
    return code
