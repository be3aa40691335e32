"""`chaoslab sweep`: the lab at each value of one or two settings, with charts and a table over them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from chaoslab.base.commandline import PROVES_NOTHING, as_json, filled, path, print_json, refuse
from chaoslab.cli import _output

if TYPE_CHECKING:
    from chaoslab.lab.launch import LabEnd
    from chaoslab.reports.sweeps import DoneCell

HELP = "run the lab at each value of one or two settings, with charts and a table over them"
EXAMPLE = "chaoslab sweep TOXIC_PROB=0,0.1,0.2,0.4 AGENT=naive --world virtual"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "settings", nargs="+", metavar="NAME=value,value", help="settings, of which one or two have several values"
    )
    parser.add_argument("--world", type=filled, help="local, compose or virtual (WORLD)")
    parser.add_argument("--trials", type=filled, help="so many at each place of the grid (TRIALS)")
    parser.add_argument("--seed", type=filled, help="of all dice (SEED)")
    parser.add_argument("--out", type=path, default=Path("charts/sweep"), help="for charts and page (%(default)s)")
    parser.add_argument("-q", "--quiet", action="store_true", help="print no progress, only the table")
    as_json(parser)


is_apart = _output.is_apart


def run(options: argparse.Namespace) -> int:
    from chaoslab.agent.prompts import as_data
    from chaoslab.config.settings import SettingError
    from chaoslab.lab import launch
    from chaoslab.lab.sweep import CellStopped, grid, sweep
    from chaoslab.reports import charts, sweeps
    from chaoslab.reports.frames import Frames, Joined

    named = {"WORLD": options.world, "TRIALS": options.trials, "SEED": options.seed}
    own = [f"{name}={value}" for name, value in named.items() if value is not None]
    try:
        cells = grid([*options.settings, *own])
        launch.check_installed(cells[0].chosen.world)
        for cell in cells:
            asked = launch.check(cell.chosen)
    except (SettingError, OSError) as error:
        return refuse(error)
    done: list[DoneCell] = []
    code = 0
    try:
        for one in sweep(cells, as_data(asked), _start, logs=launch.LOGS):
            done.append(one)
            if not options.quiet:
                print(sweeps.line(one, len(cells)), file=sys.stderr, flush=True)
    except CellStopped as stopped:
        print(stopped, file=sys.stderr)
        code = stopped.code
    if len(done) < 2:
        return code
    read = (Frames(one.folder, one.report) for one in done)
    pictures = charts.rendered(charts.overlay(Joined(read, only=charts.OVERLAID)))
    try:
        page = sweeps.write(done, pictures, options.out)
    except OSError as error:
        return refuse(OSError(f"{options.out} cannot be written: {error.strerror}"))
    if options.json:
        print_json(cells=[sweeps.plain(one) for one in done])
    else:
        print(*sweeps.table_of(done), sep="\n")
        print(f"\ncharts  {options.out}/\nreport  {page}")
    if not code and (why := _unproven(done)):
        print(f"this proves nothing: {why}", file=sys.stderr)
        return PROVES_NOTHING
    return code


def _unproven(done: Sequence[DoneCell]) -> str:
    """The reason why the runs prove nothing: faults were held back in one, or none was met in any; empty if they do."""
    from chaoslab.analysis.verdict.exposure import Exposure, exposure_of_run
    from chaoslab.record.history import History

    whole = Exposure()
    for one in done:
        exposure = exposure_of_run(History.read(one.folder))
        if exposure.held and exposure.nothing:
            return f"{one.cell}: {exposure.nothing}"
        whole += exposure
    return whole.nothing


def _start(given: Sequence[str]) -> LabEnd:
    from chaoslab.lab import launch

    with _output.aside(silent=True):
        return launch.start(given, drawn=False)
