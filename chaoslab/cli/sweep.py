"""`chaoslab sweep`: the lab at each value of one or two settings, with charts and a table over them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from chaoslab.base.commandline import (
    PROVES_NOTHING,
    add_json_option,
    parse_nonempty,
    parse_path,
    print_error,
    print_json,
)
from chaoslab.cli import _output

if TYPE_CHECKING:
    from chaoslab.lab.launch import LabEnd
    from chaoslab.reports.sweeps import DoneCell

HELP = "run the lab at each value of one or two settings, and compare them in charts and a table"
EXAMPLE = "chaoslab sweep TOXIC_PROB=0,0.1,0.2,0.4 AGENT=naive --world virtual"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "settings", nargs="+", metavar="NAME=value,value", help="settings; one or two of them with several values"
    )
    parser.add_argument("--world", type=parse_nonempty, help="local, compose or virtual (WORLD)")
    parser.add_argument("--trials", type=parse_nonempty, help="trials at each point of the grid (TRIALS)")
    parser.add_argument("--seed", type=parse_nonempty, help="seed of all dice (SEED)")
    parser.add_argument(
        "--out", type=parse_path, default=Path("charts/sweep"), help="the folder for charts and page (%(default)s)"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="print five lines at most")
    add_json_option(parser)


is_apart = _output.is_apart


def run(options: argparse.Namespace) -> int:
    from chaoslab.agent.prompts import prompts_to_json
    from chaoslab.config.settings import SettingError
    from chaoslab.lab import launch
    from chaoslab.lab.sweep import CellStopped, build_grid, run_grid_cells
    from chaoslab.reports import charts, sweeps
    from chaoslab.reports.frames import Frames, JoinedRunFrames

    named = {"WORLD": options.world, "TRIALS": options.trials, "SEED": options.seed}
    named_settings = [f"{name}={value}" for name, value in named.items() if value is not None]
    try:
        # All places of the grid are checked before the first is run, which may take hours.
        cells = build_grid([*options.settings, *named_settings])
        launch.check_packages_installed(cells[0].chosen.world)
        for cell in cells:
            prompts = launch.read_and_check_inputs(cell.chosen)
    except (SettingError, OSError) as error:
        return print_error(error)
    done_cells: list[DoneCell] = []
    code = 0
    try:
        for done_cell in run_grid_cells(cells, prompts_to_json(prompts), _run_lab_silently, logs=launch.LOGS):
            done_cells.append(done_cell)
            if not options.quiet:
                print(sweeps.render_progress_line(done_cell, len(cells)), file=sys.stderr, flush=True)
    except CellStopped as stopped:
        print(stopped, file=sys.stderr)
        code = stopped.code
    if len(done_cells) < 2:
        return code
    read = (Frames(done_cell.folder, done_cell.report) for done_cell in done_cells)
    pictures = charts.render_pngs(charts.draw_multi_run_charts(JoinedRunFrames(read, only=charts.OVERLAID)))
    try:
        page = sweeps.write_sweep(done_cells, pictures, options.out)
    except OSError as error:
        return print_error(OSError(f"{options.out} cannot be written: {error.strerror}"))
    if options.json:
        print_json(cells=[sweeps.cell_to_json(done_cell) for done_cell in done_cells])
    else:
        print(*sweeps.render_table(done_cells), sep="\n")
        print(f"\ncharts  {options.out}/\nreport  {page}")
    if not code and (unproven_reason := _explain_unproven(done_cells)):
        print(f"this proves nothing: {unproven_reason}", file=sys.stderr)
        return PROVES_NOTHING
    return code


def _explain_unproven(done_cells: Sequence[DoneCell]) -> str:
    """The reason why the runs prove nothing: faults were held back in one, or none was met in any; empty if they do."""
    from chaoslab.analysis.verdict.exposure import FaultExposure, compute_exposure
    from chaoslab.record.history import History

    total_exposure = FaultExposure()
    for done_cell in done_cells:
        exposure = compute_exposure(History.read(done_cell.folder))
        # Held back in one place of the grid, its numbers are no comparison.
        if exposure.held and exposure.no_proof_reason:
            return f"{done_cell.cell}: {exposure.no_proof_reason}"
        total_exposure += exposure
    return total_exposure.no_proof_reason


def _run_lab_silently(given: Sequence[str]) -> LabEnd:
    from chaoslab.lab import launch

    # The sweep prints a table, and a run's own lines would come in between.
    with _output.redirect_stdout(silent=True):
        return launch.start_lab(given, drawn=False)
