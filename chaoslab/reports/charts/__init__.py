"""A run in pictures: one file per picture, each a function from a history to a figure; nothing here keeps global state.

The door (`main`) is what `python charts.py` calls.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from chaoslab.events import RunStarted
from chaoslab.history import History
from chaoslab.interrupts import heard_outside_imports
from chaoslab.reports.folder import LATEST, LOGS, read

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OUT = Path("charts")


def draw(history: History) -> dict[str, Figure]:
    """The pictures of one run by file name (without `.png`); all of them, also where there is nothing to show."""
    from chaoslab.judge import judgeable, verdicts
    from chaoslab.reports.charts.errors import errors
    from chaoslab.reports.charts.mttr import mttr
    from chaoslab.reports.charts.network_latency import network_latency
    from chaoslab.reports.charts.response_time import response_time
    from chaoslab.reports.charts.success_rate import success_rate
    from chaoslab.reports.charts.throughput import throughput
    from chaoslab.reports.charts.tool_latency import tool_latency

    outcomes = {trial: str(verdict.outcome) for trial, verdict in verdicts(history).items()}
    return {
        "throughput": throughput(history),
        "success_rate": success_rate(outcomes, judgeable=judgeable(history)),
        "network_latency": network_latency(history),
        "tool_latency": tool_latency(history),
        "errors": errors(history),
        "response_time": response_time(history, outcomes),
        "mttr": mttr(history),
    }


def overlay(histories: Sequence[History]) -> dict[str, Figure]:
    """Several runs over each other, against their TOXIC_PROB."""
    from chaoslab.reports.charts.sweep import mttr_vs_toxic_prob, success_vs_toxic_prob

    return {
        "success_vs_toxic_prob": success_vs_toxic_prob(histories),
        "mttr_vs_toxic_prob": mttr_vs_toxic_prob(histories),
    }


def save(figures: dict[str, Figure], folder: Path) -> list[Path]:
    """Writes each as a PNG whose bytes depend on its data alone (no time, no version in it).

    Raises:
        OSError: they could not all be written; then the earlier ones are all there as they were.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    folder.mkdir(parents=True, exist_ok=True)
    # Two labs may draw into one folder at once: each writes files of its own, and the later pictures stay.
    parts = {folder / f"{name}.png": folder / f".{name}.{os.getpid()}.png.part" for name in figures}
    try:
        for part, figure in zip(parts.values(), figures.values(), strict=True):
            FigureCanvasAgg(figure)
            figure.savefig(part, format="png", dpi=120, metadata={"Software": None})
        for path, part in parts.items():
            part.replace(path)
    finally:
        for part in parts.values():
            part.unlink(missing_ok=True)
    return list(parts)


def main(arguments: Sequence[str] | None = None, *, logs: Path = LOGS) -> int:
    """Draws the latest run, or that one, or several over each other; 0, or 2 with one line on what was wrong."""
    from chaoslab.commandline import Parser

    parser = Parser(prog="charts.py", description="Draws a run of the lab, or lays several over each other.")
    parser.add_argument("runs", nargs="*", metavar="RUN", help="logs/<run> or its name; the latest when none is given")
    parser.add_argument("--out", type=Path, default=OUT, help="where the pictures go (default: charts)")
    options = parser.parse_args(arguments)
    try:
        runs = [(name, read(name, logs=logs)) for name in options.runs or [LATEST]]
        for name, history in runs:
            if len(runs) > 1 and toxic_prob(history) is None:
                raise LookupError(f"the logs of '{name}' do not state its TOXIC_PROB: it cannot be laid over others")
        with heard_outside_imports():
            paths = save(draw(runs[0][1]) if len(runs) == 1 else overlay([history for _, history in runs]), options.out)
        for name, note in ((name, note) for name, history in runs for note in history.notes):
            print(f"note: {f'{name}: ' if len(runs) > 1 else ''}{note}", file=sys.stderr)
    except LookupError as error:
        print(error.args[0], file=sys.stderr)
        return 2
    except OSError as error:
        said = error.strerror or error
        where = error.filename2 or error.filename or options.out
        print(f"cannot draw into {where}: {said}; --out should name a folder", file=sys.stderr)
        return 2
    except ModuleNotFoundError as error:
        print(f"{error.name} is not installed: pip install 'chaoslab[charts]'", file=sys.stderr)
        return 2
    print(*paths, sep="\n")
    return 0


def toxic_prob(history: History) -> float | None:
    """The TOXIC_PROB that a run states; None when it does not."""
    run = history.first(RunStarted)
    try:
        return float(run.settings["TOXIC_PROB"]) if run else None
    except (KeyError, TypeError, ValueError):
        return None
