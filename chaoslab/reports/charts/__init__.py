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

from chaoslab.analysis.verdict.guard import guarded
from chaoslab.base import extras
from chaoslab.base.commandline import code_for, refuse
from chaoslab.base.files import replacing
from chaoslab.base.interrupts import heard_outside_imports
from chaoslab.reports.charts._style import blank, nothing, sign
from chaoslab.reports.charts.series import AXIS, Axis, axis_of, knobs, lines, of_levels, rows, said, states
from chaoslab.reports.levels import pooled
from chaoslab.reports.places import LATEST, LOGS, charts_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from chaoslab.reports.frames import Frames

OUT = Path("charts")
DPI = 120
OVERLAID = ("runs", "trials", "incidents")
"""The tables that charts of several runs are drawn from."""
COMPRESSION = 3
"""Of zlib: a tenth larger than its usual 6, and written in half the time."""


def names() -> list[str]:
    """The charts of one run."""
    return [name for name, _ in _charts()]


def draw(run: Frames, *, only: str = "") -> dict[str, Figure]:
    """The charts of one run by file name (without `.png`), also those that have nothing to show. `only`: this one."""
    _load()
    figures = _guarded({name: partial(chart, run) for name, chart in _charts() if only in ("", name)})
    for figure in figures.values():
        sign(figure, run.measures)
    return figures


def _charts() -> Iterator[tuple[str, Callable[[Frames], Figure]]]:
    """Each file here with a function of the file's name: that function draws a chart of a run."""
    for file in pkgutil.iter_modules(__path__, f"{__name__}."):
        name = file.name.rpartition(".")[2]
        if chart := getattr(importlib.import_module(file.name), name, None):
            yield name, chart


def overlay(runs: Frames) -> dict[str, Figure]:
    """The charts of several runs, from their tables OVERLAID: against the setting in which they differ, or the one of
    most values (TOXIC_PROB if they differ in none); over two if they differ in just two; and over their level of chaos
    if that is not the same in all. Runs that differ in nothing else share a line."""
    _load()
    from chaoslab.reports.charts.sweep import heat_map, mttr_against, pass_rate, success_against, time_against

    each = rows(runs.runs)
    pictures: dict[str, Callable[[], Figure]] = {}
    if axis := axis_of(each):
        found = lines(each, axis.name)
        pictures[f"success_vs_{axis.name.lower()}"] = partial(success_against, found, axis)
        pictures[f"mttr_vs_{axis.name.lower()}"] = lambda: mttr_against(found, axis, runs.incidents)
        pictures[f"time_vs_{axis.name.lower()}"] = lambda: time_against(found, axis, runs.trials)
        both = knobs(each)
        if len(both) == 2 and len(lines(each, *both)) == 1:
            pictures["heat_map"] = partial(heat_map, each, axis, Axis.of(both[1], each))
    if of_levels(each):
        pictures["pass_rate_vs_level"] = lambda: pass_rate(
            [pooled(line.label, line.runs) for line in lines(each, of_levels=True)], passed="correct trials"
        )
    return _guarded(pictures)


def _guarded(pictures: Mapping[str, Callable[[], Figure]]) -> dict[str, Figure]:
    """The charts. If a chart's measure raises, it is replaced by one with the reason."""
    return {name: guarded(make, partial(_unknown, name)) for name, make in pictures.items()}


def _unknown(name: str, why: str) -> Figure:
    figure = nothing(name.replace("_", " ").capitalize(), f"unknown ({why})".replace("$", r"\$"))
    figure.axes[0].set_gid("")  # that something went wrong is worth a picture
    return figure


def _load() -> None:
    """Imports matplotlib without regard to MPLBACKEND: these charts need no backend. Raises Incomplete: a package that
    they need is not installed."""
    from chaoslab.config.settings import hidden

    extras.check("a chart", "charts")
    with hidden("MPLBACKEND"):
        importlib.import_module("matplotlib")


def rendered(figures: dict[str, Figure]) -> dict[str, bytes]:
    """The charts as PNG by file name, without those that have nothing to show. The bytes depend on the data alone (no
    time, no version in it)."""

    def picture(name: str, figure: Figure) -> bytes:
        return guarded(lambda: _png(figure), lambda why: _png(_unknown(name, why)))

    return {f"{name}.png": picture(name, figure) for name, figure in figures.items() if not blank(figure)}


def undrawn(figures: Mapping[str, Figure]) -> dict[str, str]:
    """The charts that would show nothing, by file name, and why."""
    return {f"{name}.png": why for name, figure in figures.items() if (why := blank(figure))}


def unfilled(empty: Mapping[str, str]) -> list[str]:
    """A line for each reason for which charts are not drawn, with their names. `empty`: as `undrawn` gives them."""
    names: dict[str, list[str]] = {}
    for name, why in empty.items():
        names.setdefault(why.removeprefix("no data: "), []).append(name)
    return [f"no {', '.join(alike)}: {why}" for why, alike in names.items()]


def _png(figure: Figure) -> bytes:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from PIL import Image

    canvas = FigureCanvasAgg(figure)
    figure.set_dpi(DPI)
    canvas.draw()  # type: ignore[no-untyped-call]  # once; savefig draws twice, for a layout
    pixels = canvas.buffer_rgba()  # type: ignore[no-untyped-call]
    picture = Image.frombuffer("RGBA", canvas.get_width_height(), pixels).convert("RGB")
    picture.save(file := BytesIO(), format="png", compress_level=COMPRESSION, dpi=(DPI, DPI))
    return file.getvalue()


def save_one(figure: Figure, path: Path) -> None:
    """Writes a chart as the kind of file that the path ends in: .png or .svg. Raises OSError: it cannot be written."""
    if path.suffix == ".png":
        path.write_bytes(_png(figure))
    else:
        figure.savefig(path, metadata={"Date": None})


def write(pictures: Mapping[str, bytes], folder: Path) -> list[Path]:
    """Writes all pictures into the folder. Raises OSError: not all could be written; the earlier ones are then
    unchanged."""
    folder.mkdir(parents=True, exist_ok=True)
    # Two labs may draw into one folder at once: each writes its own temporary files, and the later pictures stay.
    paths = {folder / name: picture for name, picture in pictures.items()}
    with ExitStack() as stack:
        for path, picture in paths.items():
            stack.enter_context(replacing(path)).write_bytes(picture)
        for path in paths:  # before any is replaced
            if path.is_dir() and not path.is_symlink():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    return list(paths)


def places(own: Path, *, out: Path, logs: Path) -> list[Path]:
    """The folders for a run's charts: `own`, and also `out` if it is the latest run."""
    latest = logs / LATEST
    return [own, out] if latest.exists() and latest.resolve() == own.parent.resolve() else [own]


def put(
    pictures: Mapping[str, bytes], folders: Sequence[Path], *, without: Iterable[str] = ()
) -> tuple[list[Path], list[str], int]:
    """Writes the pictures into each folder, and removes those of earlier runs that are named in `without`; returns the
    paths, a line for each folder that cannot be written, and the exit code."""
    paths, complaints, code = [], [], 0
    for folder in folders:
        try:
            paths += write(pictures, folder)
            for name in without:
                with suppress(OSError):  # a folder of the user's, for one
                    (folder / name).unlink(missing_ok=True)
        except OSError as error:
            where = error.filename2 or error.filename or folder
            complaints.append(f"cannot draw into {where}: {error.strerror or error}")
            code = max(code, code_for(error))
    return paths, complaints, code


def main(names: Sequence[str] = (), *, out: Path | None = None, logs: Path = LOGS) -> int:
    """Draws the named runs, by default the latest; several are drawn over each other. Returns 0, or with one line
    on the error 2, or 3 if the disk is full."""
    from chaoslab.reports.frames import Frames, Joined

    names = names or [LATEST]
    notes: list[str] = []
    apart = ""

    def frames_of(name: str) -> Frames:
        run = Frames.read(name, logs=logs)
        notes.extend(f"{name}: {note}" if len(names) > 1 else note for note in run.measures.notes)
        return run

    try:
        with heard_outside_imports():
            if len(names) == 1:
                figures = draw(frames_of(*names))
            else:
                runs = Joined(map(frames_of, names), only=OVERLAID)
                each = rows(runs.runs)
                if axis := axis_of(each):
                    apart = said(lines(each, axis.name), axis.name)
                elif not of_levels(each):
                    silent = next(name for name, run in zip(names, each, strict=True) if not states(run, AXIS))
                    raise LookupError(f"the logs of '{silent}' do not state its {AXIS}: it cannot be laid over others")
                figures = overlay(runs)
            pictures, empty = rendered(figures), undrawn(figures)
    except (LookupError, extras.Incomplete) as error:
        return refuse(error)
    alone = len(names) == 1 and not out
    folders = places(charts_of(names[0], logs=logs), out=OUT, logs=logs) if alone else [out or OUT]
    paths, complaints, code = put(pictures, folders, without=empty)
    for line in [
        *(f"note: {note}" for note in notes),
        *(line for line in unfilled(empty) if not complaints),
        *filter(None, [apart]),
        *(f"{complaint}; --out should name a folder" for complaint in complaints),
    ]:
        print(line, file=sys.stderr)
    if paths:
        print(*paths, sep="\n")
    return code
